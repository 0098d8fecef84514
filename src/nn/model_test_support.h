// What tests of the engine share: random batches, and a model beside the plain reference with the
// same numbers.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "nn/model.h"
#include "nn/reference.h"

namespace convoy::testing {

inline Batch random_batch(const Network& network, int size, std::uint64_t seed = 7) {
  Batch batch;
  Rng rng(seed, Purpose::test);
  batch.images.resize(network.input_shape().count() * size);
  for (float& pixel : batch.images) pixel = rng.normal();
  for (int i = 0; i < size; ++i) {
    batch.labels.push_back(std::int32_t(rng.below(std::uint32_t(network.classes()))));
    batch.samples.push_back(std::uint32_t(i));
  }
  return batch;
}

// Norms and biases away from 1 and 0, so that a forgotten one shows.
inline void shake(Parameters& parameters, std::uint64_t seed = 11) {
  Rng rng(seed, Purpose::test, 1);
  std::vector<float> plain;
  for (const Parameter& parameter : parameters.list()) {
    if (parameter.spec.role == Role::weight) continue;
    plain.resize(parameter.spec.count());
    parameters.export_values(parameter, plain);
    for (float& value : plain) value += 0.1f * rng.normal();
    parameters.import_values(parameter, plain);
  }
  for (Buffer& buffer : parameters.buffers())
    for (float& value : buffer.values) value += 0.2f * rng.uniform();
}

inline ReferenceGraph reference_of(const Network& network, const Parameters& parameters,
                                   int batch) {
  ReferenceGraph reference(network, batch);
  std::vector<float> plain;
  for (const Parameter& parameter : parameters.list()) {
    plain.resize(parameter.spec.count());
    parameters.export_values(parameter, plain);
    reference.set(parameter.spec.name, plain);
  }
  for (const Buffer& buffer : parameters.buffers()) reference.set(buffer.name, buffer.values);
  return reference;
}

inline ReferenceGraph reference_of(const Model& model, int batch) {
  return reference_of(model.network(), model.parameters(), batch);
}

// |a - b| / |b| over all elements.
template <typename A, typename B>
double relative_error(const A& a, const B& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace convoy::testing
