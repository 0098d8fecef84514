// Checkpoints: two safetensors files. NAME.safetensors has the weights and running statistics,
// under torchvision's names and in its layout, so that other programs read them;
// NAME.state.safetensors has what training needs besides to go on with the same bits: the
// optimizer's state and the position.
//
// The state is written first and names the weights it belongs to by their SHA-256, which the
// weights carry too. A crash between the two leaves a state without weights (which nobody lists) or
// a pair that does not match (which is refused).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/shape.h"
#include "nn/network.h"
#include "nn/parameters.h"

namespace convoy {

// Where training stood. Only the numbers are understood here; the texts are the trainer's own.
struct CheckpointState {
  int epoch = 0;          // finished epochs
  std::int64_t step = 0;  // finished steps of the epoch under way
  std::string position = {};
  std::string configuration = {};
  bool operator==(const CheckpointState&) const = default;
};

// Arenas of the parameters' layout by name, as Optimizer::state() lists them.
using StateArenas = std::span<const std::pair<std::string, std::span<float>>>;

// Writes folder/epoch-0003-step-000117.safetensors and its state; returns the path of the former.
// Creates the folder.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Network& network,
                                      const Parameters& parameters, StateArenas arenas,
                                      const CheckpointState& state);

// The weights alone, for example of the finished network.
void save_weights(const std::filesystem::path& path, const Network& network,
                  const Parameters& parameters);

// To go on: fills the parameters from the weights at `path` (strictly) and the arenas from the
// state beside them. Throws DataError where a file is missing or damaged, the two do not belong
// together, or they are of another network or optimizer.
CheckpointState load_checkpoint(const std::filesystem::path& path, const Network& network,
                                Parameters& parameters, StateArenas arenas);

// strict: the file has exactly the tensors of the network. transfer: the head (the last layer that
// has parameters) may be missing or be for another number of classes, and is then left as it is. In
// both, PyTorch's counters of batches and the auxiliary heads of inception_v1 are ignored.
enum class LoadMode { strict, transfer };

// Returns the names of the parameters that were left as they were. Nothing changes where the file
// does not fit: a DataError says how the first tensor differs and how many more do. (A disk that
// fails after that, in mid-read, may leave some tensors read.)
std::vector<std::string> load_weights(const std::filesystem::path& path, const Network& network,
                                      Parameters& parameters, LoadMode mode);

// What a file of weights says of itself. Files of other programs say nothing: `model` is empty
// then.
struct CheckpointInfo {
  std::string model;
  Shape input;
  int classes = 0;
};
CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

// The state beside the weights at `path` without its arenas: its configuration says which network
// to make for them.
CheckpointState read_checkpoint_state(const std::filesystem::path& path);

// x.safetensors -> x.state.safetensors
std::filesystem::path state_path(const std::filesystem::path& weights);

// epoch-0003-step-000117: sorts by progress.
std::string checkpoint_name(int epoch, std::int64_t step);

// The newest checkpoint of the folder whose two files are there and belong together; none: nothing.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

// Removes all but the newest `keep` checkpoints (0 keeps all), and older states that a crash has
// left without weights. Other files stay.
void prune_checkpoints(const std::filesystem::path& folder, int keep);

}  // namespace convoy
