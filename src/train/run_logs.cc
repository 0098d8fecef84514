#include "train/run_logs.h"

#include "train/trainer.h"

namespace convoy {

RunLogs::RunLogs(const TrainConfig& config, std::size_t train_samples, std::size_t test_samples) {
  if (!config.tensorboard.empty()) board_.emplace(config.tensorboard);
  if (config.mllog.empty()) return;
  log_.emplace(config.mllog);
  log_->point("submission_benchmark", config.model);
  log_->point("submission_platform", config.data);
  log_->begin("init_start");
  log_->point("global_batch_size", config.batch);
  log_->point("train_samples", train_samples);
  log_->point("eval_samples", test_samples);
  log_->point("seed", config.seed);
  log_->point("opt_name", config.optimizer);
  log_->point("opt_base_learning_rate", schedule_options(config).rate);
  log_->point("opt_weight_decay", config.weight_decay);
  log_->end("init_stop");
  log_->begin("run_start");
}

void RunLogs::start_epoch(int epoch) {
  if (log_) log_->begin("epoch_start", {{"epoch_num", epoch}});
}

void RunLogs::progress(std::int64_t step, double loss, double images_per_s) {
  if (board_) board_->add(step, {{"train/loss", loss}, {"images_per_s", images_per_s}});
}

void RunLogs::epoch(const EpochRecord& record, std::int64_t step, double images_per_s) {
  if (board_) {
    TensorBoardFile::Scalars scalars = {{"epoch/train_loss", record.train_loss},
                                        {"epoch/train_accuracy", record.train_accuracy},
                                        {"epoch/seconds", record.seconds},
                                        {"epoch/images_per_s", images_per_s}};
    if (record.test) {
      scalars.push_back({"epoch/test_loss", record.test->loss});
      scalars.push_back({"epoch/test_accuracy", record.test->accuracy});
    }
    board_->add(step, scalars);
  }
  if (!log_) return;
  const nlohmann::json about = {{"epoch_num", record.epoch}};
  log_->point("train_loss", record.train_loss, about);
  log_->point("throughput", images_per_s, about);
  if (record.test) {
    log_->begin("eval_start", about);
    log_->point("eval_accuracy", record.test->accuracy, about);
    log_->point("eval_error", record.test->loss, about);
    log_->end("eval_stop", about);
  }
  log_->end("epoch_stop", about);
}

void RunLogs::end(bool finished) {
  if (log_) log_->end("run_stop", {{"status", finished ? "success" : "aborted"}});
}

}  // namespace convoy
