#include "measure/trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "measure/records.h"

namespace convoy {
namespace {

using nlohmann::json;

constexpr std::size_t kTailBytes = 4096;  // left for the end of the document

struct Slice {
  std::int64_t rank = 0;
  int lane = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};

int lane_of(const std::string& name) {
  for (int lane = 0; lane < 3; ++lane)
    if (name == kLaneNames[lane]) return lane;
  return 0;
}

double microseconds(std::int64_t ns) { return 1e-3 * double(ns); }

class TraceText {
 public:
  // False: it does not fit any more.
  bool add(const json& event) {
    const std::string line = event.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text_.size() + line.size() + kTailBytes > kMostTraceBytes) return false;
    text_ += (text_.empty() ? "" : ",\n") + line;
    return true;
  }
  std::string finish(const json& about) const {
    return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n",
                       about.dump(-1, ' ', false, json::error_handler_t::replace), text_);
  }

 private:
  std::string text_;
};

json slice_event(const Slice& slice, const std::string& name, const json& arguments) {
  return {{"ph", "X"},
          {"name", name},
          {"cat", kLaneNames[slice.lane]},
          {"pid", slice.rank},
          {"tid", slice.lane},
          {"ts", microseconds(slice.begin_ns)},
          {"dur", microseconds(slice.end_ns - slice.begin_ns)},
          {"args", arguments}};
}

// An arrow from the beginning of a slice to the end of another, where they are bound.
std::vector<json> flow_events(const Slice& from, const Slice& to, std::int64_t id,
                              const std::string& name) {
  const auto event = [&](const char* kind, const Slice& slice, std::int64_t at_ns) {
    return json{{"ph", kind},
                {"name", name},
                {"cat", "flow"},
                {"id", id},
                {"pid", slice.rank},
                {"tid", slice.lane},
                {"ts", microseconds(at_ns)}};
  };
  json end = event("f", to, to.end_ns);
  end["bp"] = "e";  // to the slice that encloses it
  return {event("s", from, from.begin_ns), end};
}

// The ranks as processes, the lanes as their threads.
void name_ranks(Store& store, std::int64_t run, TraceText& trace) {
  Statement ranks =
      store.database().prepare("SELECT rank, role, host FROM ranks WHERE run = ?1 ORDER BY rank");
  ranks.bind(run);
  while (ranks.next()) {
    const std::int64_t rank = ranks.integer(0);
    const auto name = [&](const char* what, int thread, const std::string& text) {
      trace.add({{"ph", "M"},
                 {"name", what},
                 {"pid", rank},
                 {"tid", thread},
                 {"args", {{"name", text}}}});
    };
    name("process_name", 0, fmt::format("rank {} ({}, {})", rank, ranks.text(1), ranks.text(2)));
    for (int lane = 0; lane < 3; ++lane) name("thread_name", lane, kLaneNames[lane]);
  }
}

// Of one step: from whoever began an operation last to all others who took part.
bool add_flows(const std::map<std::int64_t, std::vector<Slice>>& operations, std::int64_t& id,
               TraceText& trace) {
  for (const auto& [operation, slices] : operations) {
    const Slice* last = &slices.front();
    for (const Slice& slice : slices)
      if (slice.begin_ns > last->begin_ns) last = &slice;
    for (const Slice& slice : slices) {
      if (&slice == last) continue;
      ++id;
      for (const json& event :
           flow_events(*last, slice, id, fmt::format("operation {}", operation)))
        if (!trace.add(event)) return false;
    }
  }
  return true;
}

}  // namespace

std::string trace_text(Store& store, const RunRow& run) {
  TraceText trace;
  name_ranks(store, run.id, trace);
  Statement spans = store.database().prepare(
      "SELECT s.step, s.rank, s.lane, s.name, s.begin_ns, s.end_ns, s.operation, s.bytes, l.name "
      "FROM spans s LEFT JOIN layers l ON l.run = s.run AND l.node = s.node WHERE s.run = ?1 "
      "ORDER BY s.step, s.rank, s.number");
  spans.bind(run.id);
  std::map<std::int64_t, std::vector<Slice>> operations;  // of the step under way
  std::int64_t step = 0, id = 0, slices = 0;
  bool fits = true;
  while (fits && spans.next()) {
    if (spans.integer(0) != step) {
      fits = add_flows(operations, id, trace);
      operations.clear();
      step = spans.integer(0);
    }
    const Slice slice{spans.integer(1), lane_of(spans.text(2)), spans.integer(4), spans.integer(5)};
    json arguments = {{"step", step}};
    if (!spans.is_null(6)) arguments["operation"] = spans.integer(6);
    if (!spans.is_null(7)) arguments["bytes"] = spans.integer(7);
    const std::string layer = spans.text(8);
    fits =
        fits && trace.add(slice_event(
                    slice, layer.empty() ? spans.text(3) : spans.text(3) + " " + layer, arguments));
    if (fits && !spans.is_null(6)) operations[spans.integer(6)].push_back(slice);
    ++slices;
  }
  if (slices == 0)
    throw DataError("run {} has no step in detail: it ended before its second step", run.name);
  if (fits) add_flows(operations, id, trace);
  return trace.finish({{"run", run.name}, {"model", run.model}, {"whole", fits}});
}

}  // namespace convoy
