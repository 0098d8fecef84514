// A family of kernels carries layers out, in one layout of its own from the first layer to the
// last. What stands between a graph and a family is small: how many bytes a value takes, how a
// parameter is stored, and an Op per layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"
#include "kernels/layers.h"
#include "kernels/statistics_exchange.h"

namespace convoy {

// How one parameter lies in the arena. Stored floats beyond the plain ones are padding: zero, and
// kept zero by every elementwise update because their gradients are zero too.
class StoredLayout {
 public:
  virtual ~StoredLayout() = default;
  virtual std::size_t stored_count() const = 0;
  virtual void to_plain(const float* stored, float* plain) const = 0;
  virtual void from_plain(const float* plain, float* stored) const = 0;
};

// What a layer computes on: everything that is fixed when a graph is bound.
struct OpSpec {
  Layer layer;
  std::string name;
  std::vector<Shape> inputs;  // shapes of one sample
  Shape output;  // authoritative: may have fewer rows and columns than the layer alone would give,
                 // where nobody reads the rest; inputs likewise
  int batch = 0;
  int tuning_batch = 0;  // the batch for which the choice of algorithms is made and remembered
  bool training = true;  // false: forward only, batch norm by running statistics, no dropout
  bool first = false;    // reads the network's input, which is plain f32 NCHW in every family
  bool last =
      false;  // its output is the logits, which are plain f32 [batch][classes] in every family
  bool wants_input_gradient = true;
  std::uint64_t seed = 1;  // of dropout

  // In the parameter arena, stored layout; null where the layer has none. Fixed for the life of the
  // Op.
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
  float* running_mean = nullptr;  // batch norm: read in evaluation, updated by forward in training
  float* running_variance = nullptr;
  // Batch norm in training takes its statistics over the samples of all workers, by one call in
  // forward and one in backward; its parameters' gradients are this worker's part alone. Null: over
  // the batch.
  StatisticsExchange* exchange = nullptr;
};

// Moves weights while backward runs, so that the gradients of large layers need not pass through
// memory. Called by several threads at once, for ranges that do not overlap.
class WeightUpdate {
 public:
  virtual ~WeightUpdate() = default;
  // `weight` is where in the arena the gradient's first number belongs; the range lies within one
  // parameter.
  virtual void apply(const float* weight, std::span<const float> gradient) = 0;
};

// What changes from step to step, for layers that draw random numbers.
struct StepKey {
  std::uint32_t epoch = 0;
  std::span<const std::uint32_t> samples;  // index of each image of the batch in its data set
};

// Left: a layer may leave the last pass over what it writes to the layer that runs next and reads
// it, which does that part by part, shortly before it reads each. `leave` has room for
// OpTraits::left_bytes, to say what is to be done, in a form that the family's layers agree on;
// `left` is what the layer that ran before has said.
struct ForwardArgs {
  std::span<const std::byte* const> inputs;
  std::byte* output;
  std::byte* saved;    // traits().saved_bytes that live until this op's backward
  std::byte* scratch;  // traits().scratch_bytes that live for this call
  StepKey key;
  std::byte* leave = nullptr;       // see Left: of the output
  const std::byte* left = nullptr;  // of inputs[0]
};

// Sums over the gradient of a layer's output, which the layer that writes this gradient takes while
// it has it in hand. It applies the ReLU of the former first: the gradient becomes zero where the
// value is not positive.
struct GradientSums {
  const std::byte* factor =
      nullptr;  // a value of the same shape: sums of the product are wanted too
  bool relu = false;
  const std::byte* saved = nullptr;  // with the factor, which is there then, it tells where the
                                     // value is positive, see OpTraits::saves_signs; null: read it
  std::byte* sums = nullptr;  // OpTraits::sums_bytes, in a form that the family's layers agree on
};

// Seconds of a layer's backward, where it makes the two gradients one after the other.
struct BackwardTimes {
  double data_s = 0;
  double weights_s = 0;
};

struct BackwardArgs {
  std::span<const std::byte* const> inputs;  // valid where traits().reads_inputs
  const std::byte* output;                   // valid where traits().reads_output
  const std::byte* saved;
  std::byte* scratch;
  std::byte* output_gradient;                   // may be overwritten where traits().spoils_gradient
  std::span<std::byte* const> input_gradients;  // null: not wanted. Written, not added to.
  bool add_to_gradient =
      false;  // but input_gradients[0] is added to; only where traits().adds_gradient
  const GradientSums* take = nullptr;  // of input_gradients[0]; only where traits().takes_sums
  const std::byte* taken = nullptr;    // of output_gradient, by the layer that wrote it; only where
                                       // traits().sums_bytes
  std::byte* leave = nullptr;          // see Left: of input_gradients[0]
  const std::byte* left = nullptr;     // of output_gradient
  BackwardTimes* times = nullptr;      // added to, where given
  WeightUpdate* update = nullptr;      // only where traits().updates_weight: moves the weight by it
                                       // instead of writing the weight's gradient
};

// What the memory planner must know of an op.
struct OpTraits {
  bool reads_inputs = false;  // backward reads the forward inputs
  bool reads_output = false;  // backward reads the forward output
  bool in_place =
      false;  // the output may lie where the (single) input lies, if nobody else reads that
  bool gradient_in_place = false;  // input_gradients[0] may be output_gradient
  bool spoils_gradient = false;    // backward changes output_gradient
  bool adds_gradient = false;      // backward can add to input_gradients[0] instead of writing it
  bool passes_gradient =
      false;  // each input's gradient is exactly output_gradient after backward(): no buffer needed
  bool passes_second =
      false;  // the second input's gradient is exactly output_gradient after backward()
  bool updates_weight = false;   // backward can move the weight itself
  bool takes_sums = false;       // backward can take sums over input_gradients[0], see GradientSums
  std::size_t sums_bytes = 0;    // room for those that backward can use, if somebody takes them;
  bool sums_with_input = false;  // also with inputs[0] as the factor,
  bool sums_behind_relu = false;
  bool saves_signs = false;     // where the output is positive follows from inputs[0] and `saved`,
                                // in a form that the family's layers agree on
  std::size_t left_bytes = 0;   // above 0: can leave its output and the gradient of its first input
  bool makes_input = false;     // forward does what is left for inputs[0]
  bool makes_gradient = false;  // backward does what is left for output_gradient
  std::size_t saved_bytes = 0;
  std::size_t scratch_bytes = 0;
};

// One layer bound to one batch size. Buffers are 64-byte aligned. Not used by two tasks at once.
class Op {
 public:
  virtual ~Op() = default;
  virtual const OpTraits& traits() const = 0;
  virtual void forward(const ForwardArgs& args) = 0;
  // Writes the parameters' gradients (not adds) and those of the inputs that are wanted.
  virtual void backward(const BackwardArgs& args) = 0;
};

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string name() const = 0;
  // Bytes of a value of this shape inside the graph (not for the network's input and logits, which
  // are plain f32).
  virtual std::size_t value_bytes(const Shape& shape, int batch) const = 0;
  // How the weight of this layer is stored. Biases and norms are stored plainly, padded to a
  // multiple of 16 floats.
  virtual std::unique_ptr<StoredLayout> weight_layout(const OpSpec& spec) const = 0;
  virtual std::unique_ptr<Op> bind(const OpSpec& spec) const = 0;
  // Whether bind() takes this kind of layer with a ReLU folded in.
  virtual bool folds_relu(const Layer& layer) const = 0;
  // Whether bind() takes a batch norm with a second input that is added to its output, before the
  // ReLU.
  virtual bool folds_add() const { return false; }
  // accumulator += addend, two gradients of a value of this shape (of values that several layers
  // read).
  virtual void add(std::byte* accumulator, const std::byte* addend, const Shape& shape,
                   int batch) const = 0;
};

}  // namespace convoy
