#include "train/carry_out.h"

#include "base/error.h"
#include "kernels/parallel.h"
#include "nn/checkpoint.h"
#include "train/records.h"
#include "train/summary.h"

namespace convoy {

TrainResult carry_out(RunParts& parts, const RunCourse& course, std::FILE* human) {
  const bool leads = parts.workers->leads();
  const int team = threads();
  const auto record = [&](const std::string& state, const nlohmann::json& result) {
    if (leads) write_run_record(parts.folder, parts.config, team, state, result);
  };
  record("running", nullptr);
  try {
    TrainResult result{
        .finished = course.run(), .leads = leads, .folder = parts.folder, .answer = {}};
    if (leads) {
      if (result.finished)
        save_weights(parts.folder / "final.safetensors", parts.model->network(),
                     parts.model->parameters());
      const RunView view = course.view();
      result.answer = make_answer(parts, view);
      record(result.finished ? "finished" : "interrupted", result.answer);
      if (result.finished) print_summary(parts, view, human);
    }
    course.leave();
    parts.workers->close();
    return result;
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    try {
      record("failed", {{"error", reason}});
    } catch (const DataError&) {  // the first error is the one to report
    }
    throw;
  }
}

}  // namespace convoy
