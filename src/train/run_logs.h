// A run's course for other programs: TensorBoard's event files and MLPerf's log lines, as the
// configuration asks for. The leading worker's.
#pragma once

#include <cstdint>
#include <optional>

#include "measure/mllog.h"
#include "measure/tensorboard.h"
#include "train/config.h"

namespace convoy {

struct EpochRecord;

class RunLogs {
 public:
  // Throws DataError where a file cannot be made.
  RunLogs(const TrainConfig& config, std::size_t train_samples, std::size_t test_samples);

  void start_epoch(int epoch);
  void progress(std::int64_t step, double loss, double images_per_s);
  void epoch(const EpochRecord& record, std::int64_t step, double images_per_s);
  void end(bool finished);

 private:
  std::optional<TensorBoardFile> board_;
  std::optional<MlLog> log_;
};

}  // namespace convoy
