#include "nn/checkpoint.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "nn/checkpoint_metadata.h"
#include "nn/checkpoint_weights.h"
#include "nn/safetensors.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

void write_state(const fs::path& path, const Parameters& parameters, StateArenas arenas,
                 const CheckpointState& state, const std::string& digest) {
  std::vector<TensorSpec> specs;
  for (const auto& [arena, floats] : arenas)
    for (const Parameter& parameter : parameters.list())
      specs.push_back({.name = arena + "." + parameter.spec.name, .dims = parameter.spec.dims});
  SafetensorsWriter writer(path, specs,
                           {{kVersionKey, std::to_string(kCheckpointVersion)},
                            {kDigestKey, digest},
                            {"epoch", std::to_string(state.epoch)},
                            {"step", std::to_string(state.step)},
                            {"position", state.position},
                            {"configuration", state.configuration}});
  std::vector<float> plain;
  for (const auto& [arena, floats] : arenas)
    for (const Parameter& parameter : parameters.list()) {
      plain.resize(parameter.spec.count());
      parameters.export_from(floats, parameter, plain);
      writer.write(std::span<const float>(plain));
    }
  writer.commit();
}

// The state, which stands beside the weights in every listing, is easily taken for them.
void refuse_state(const fs::path& path) {
  if (path.string().ends_with(".state.safetensors"))
    throw DataError(
        "{}: is the state of training beside the weights; give the file without '.state'",
        path.string());
}

// The state's file, which must be there.
SafetensorsFile open_state(const fs::path& weights) {
  refuse_state(weights);
  const fs::path path = state_path(weights);
  if (!fs::exists(path) && fs::exists(weights))
    throw DataError(
        "{}: is missing, so training cannot be resumed from {}; start from those weights with "
        "--init",
        path.string(), weights.filename().string());
  return SafetensorsFile(path);
}

CheckpointState state_of(const SafetensorsFile& file) {
  check_version(file);
  return {.epoch = metadata_number<int>(file, "epoch"),
          .step = metadata_number<std::int64_t>(file, "step"),
          .position = metadata_text(file, "position"),
          .configuration = metadata_text(file, "configuration")};
}

// The names of the arenas in a file, or wanted by an optimizer, as a message says them.
std::string listed(const std::set<std::string>& names) {
  return names.empty() ? "no state" : fmt::format("{}", fmt::join(names, ", "));
}

// The file has the state of this optimizer for these parameters, and nothing else.
void check_arenas(const SafetensorsFile& file, const Parameters& parameters, StateArenas arenas) {
  std::set<std::string> found, wanted;
  for (const StoredTensor& tensor : file.tensors())
    found.insert(printable(tensor.name.substr(0, tensor.name.find('.'))));
  for (const auto& [arena, floats] : arenas) wanted.insert(arena);
  if (found != wanted)
    throw DataError(
        "{}: has {} of an optimizer, but this run's keeps {}; resume with the optimizer and "
        "momentum "
        "that it was saved with, or start anew with --init",
        file.name(), listed(found), listed(wanted));
  for (const auto& [arena, floats] : arenas)
    for (const Parameter& parameter : parameters.list()) {
      const std::string name = arena + "." + parameter.spec.name;
      const StoredTensor* tensor = file.find(name);
      if (tensor == nullptr)
        throw DataError("{}: tensor '{}' is missing; this is the state of another network",
                        file.name(), name);
      check_tensor(file, *tensor, parameter.spec.dims);
    }
  const std::size_t expected = arenas.size() * parameters.list().size();
  if (file.tensors().size() != expected)
    throw DataError("{}: has {} tensors instead of {}; this is the state of another network",
                    file.name(), file.tensors().size(), expected);
}

void check_pair(const SafetensorsFile& weights, const SafetensorsFile& state) {
  if (metadata_text(weights, kDigestKey) != metadata_text(state, kDigestKey))
    throw DataError(
        "{}: is not the state of {} (a save was cut short, or a file was copied over); resume from "
        "an "
        "older checkpoint, or start from these weights with --init",
        state.name(), weights.name());
}

}  // namespace

fs::path state_path(const fs::path& weights) {
  fs::path path = weights;
  if (path.extension() == ".safetensors") path.replace_extension();
  path += ".state.safetensors";
  return path;
}

fs::path save_checkpoint(const fs::path& folder, const Network& network,
                         const Parameters& parameters, StateArenas arenas,
                         const CheckpointState& state) {
  make_folder(folder);
  const fs::path path = folder / (checkpoint_name(state.epoch, state.step) + ".safetensors");
  const std::string digest = parameters.sha256();
  write_state(state_path(path), parameters, arenas, state, digest);
  write_weights(path, network, parameters, digest);
  return path;
}

void save_weights(const fs::path& path, const Network& network, const Parameters& parameters) {
  write_weights(path, network, parameters, parameters.sha256());
}

std::vector<std::string> load_weights(const fs::path& path, const Network& network,
                                      Parameters& parameters, LoadMode mode) {
  refuse_state(path);
  const SafetensorsFile file(path);
  check_version(file);
  const WeightsPlan plan = plan_weights(file, network, parameters, mode);
  read_weights(file, plan, parameters);
  return plan.left;
}

CheckpointState load_checkpoint(const fs::path& path, const Network& network,
                                Parameters& parameters, StateArenas arenas) {
  refuse_state(path);
  const SafetensorsFile weights(path);
  const SafetensorsFile state = open_state(path);
  check_version(weights);
  CheckpointState loaded = state_of(state);
  check_pair(weights, state);
  const WeightsPlan plan = plan_weights(weights, network, parameters, LoadMode::strict);
  check_arenas(state, parameters, arenas);
  read_weights(weights, plan, parameters);
  std::vector<float> plain;
  for (const auto& [arena, floats] : arenas)
    for (const Parameter& parameter : parameters.list()) {
      plain.resize(parameter.spec.count());
      state.read(*state.find(arena + "." + parameter.spec.name), plain);
      parameters.import_to(floats, parameter, plain);
    }
  if (parameters.sha256() != metadata_text(state, kDigestKey))
    throw DataError(
        "{}: its weights are not those that were saved (their SHA-256 differs); the file is "
        "damaged, "
        "resume from an older checkpoint",
        weights.name());
  return loaded;
}

CheckpointState read_checkpoint_state(const fs::path& path) { return state_of(open_state(path)); }

}  // namespace convoy
