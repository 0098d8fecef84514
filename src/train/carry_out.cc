#include "train/carry_out.h"

#include "base/error.h"
#include "base/file.h"
#include "kernels/parallel.h"
#include "nn/checkpoint.h"
#include "train/records.h"
#include "train/summary.h"

namespace convoy {

TrainResult carry_out(RunParts& parts, const RunCourse& course, std::FILE* human) {
  const bool leads = parts.workers->leads();
  const int team = threads();
  RunEntry* const entry = course.entry;
  const auto record = [&](const std::string& state, const nlohmann::json& result) {
    if (leads) write_run_record(parts.folder, parts.config, team, state, result);
  };
  record("running", nullptr);
  try {
    // Where it cannot be written, say so now.
    if (leads && entry && !parts.config.trace.empty()) AtomicFile{parts.config.trace};
    TrainResult result{
        .finished = course.run(), .leads = leads, .folder = parts.folder, .answer = {}};
    Findings findings;
    std::vector<RankTotals> totals;
    if (entry && !course.together) {
      entry->recording->abandon();
      totals = course.totals();
      findings = {.run = entry->name, .verdict = verdict_with_servers(totals), .cost_s = 0};
    } else if (entry) {
      entry->recording->finish();
      totals = entry->recording->all_totals();
      record_clocks(*entry->recording, totals);
      findings = {.run = entry->name, .verdict = verdict(totals), .cost_s = 0};
    }
    if (leads) {
      if (result.finished)
        save_weights(parts.folder / "final.safetensors", parts.model->network(),
                     parts.model->parameters());
      const RunView view = course.view();
      const std::string state = result.finished ? "finished" : "interrupted";
      result.answer = make_answer(parts, view, findings.run);
      result.answer["state"] = state;
      if (entry) {
        result.answer["verdict"] = findings.verdict;
        result.answer["ledger_error"] = ledger_error(totals);
        record_end(*entry->recording, state, result.answer, findings.verdict, "");
      }
      record(state, result.answer);
      if (entry) {
        findings.recorded = entry->recording->flush();
        if (!parts.config.trace.empty()) write_trace(parts.config, entry->name);
        if (entry->logs) entry->logs->end(result.finished);
        findings.cost_s = entry->recording->own_cost_s();
      }
      if (result.finished) print_summary(parts, view, findings, human);
    }
    course.leave();
    parts.workers->close();
    return result;
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    if (entry) {
      entry->recording->abandon();
      record_end(*entry->recording, "failed", nullptr, "", reason);
    }
    try {
      record("failed", {{"error", reason}});
    } catch (const DataError&) {  // the first error is the one to report
    }
    throw;
  }
}

}  // namespace convoy
