#include "sync/ps/job.h"

#include <algorithm>

#include "sync/exact.h"
#include "sync/ps/policy.h"
#include "sync/wire_code.h"

namespace convoy {
namespace {

using nlohmann::json;

json to_json(const OptimizerOptions& o) {
  return {{"kind", o.kind},          {"momentum", o.momentum},   {"nesterov", o.nesterov},
          {"decay", o.weight_decay}, {"decay_all", o.decay_all}, {"bias_rate", o.bias_rate},
          {"beta1", o.beta1},        {"beta2", o.beta2},         {"epsilon", o.epsilon},
          {"trust", o.trust}};
}

OptimizerOptions optimizer_from(const json& o) {
  return {.kind = o.at("kind"),
          .momentum = o.at("momentum"),
          .nesterov = o.at("nesterov"),
          .weight_decay = o.at("decay"),
          .decay_all = o.at("decay_all"),
          .bias_rate = o.at("bias_rate"),
          .beta1 = o.at("beta1"),
          .beta2 = o.at("beta2"),
          .epsilon = o.at("epsilon"),
          .trust = o.at("trust")};
}

json to_json(const ScheduleOptions& s) {
  return {{"kind", s.kind},
          {"rate", s.rate},
          {"warmup", s.warmup_epochs},
          {"milestones", s.milestones},
          {"gamma", s.gamma},
          {"final", s.final_rate},
          {"peak_at", s.peak_at}};
}

ScheduleOptions schedule_from(const json& s) {
  return {.kind = s.at("kind"),
          .rate = s.at("rate"),
          .warmup_epochs = s.at("warmup"),
          .milestones = s.at("milestones"),
          .gamma = s.at("gamma"),
          .final_rate = s.at("final"),
          .peak_at = s.at("peak_at")};
}

json to_json(const CourseOptions& c) {
  return {{"epochs", c.epochs},
          {"first_epoch", c.first_epoch},
          {"first_step", c.first_step},
          {"samples", c.samples},
          {"batch", c.batch},
          {"parts", c.parts},
          {"test_steps", c.test_steps},
          {"eval_every", c.eval_every},
          {"guard", c.guard}};
}

CourseOptions course_from(const json& c) {
  return {.epochs = c.at("epochs"),
          .first_epoch = c.at("first_epoch"),
          .first_step = c.at("first_step"),
          .samples = c.at("samples"),
          .batch = c.at("batch"),
          .parts = c.at("parts"),
          .test_steps = c.at("test_steps"),
          .eval_every = c.at("eval_every"),
          .guard = c.at("guard")};
}

}  // namespace

std::int64_t CourseOptions::batch_samples(int step) const {
  return std::min(batch, samples - step * batch);
}

std::int64_t CourseOptions::part_samples(int step, int part) const {
  const std::int64_t count = batch_samples(step);
  return count * (part + 1) / parts - count * part / parts;
}

int CourseOptions::parts_of_epoch() const {
  int count = 0;
  for (int step = 0; step < steps(); ++step)
    count += int(std::min<std::int64_t>(parts, batch_samples(step)));
  return count;
}

// With spare workers nobody can tell which of them was in a round that is lost: they may then wait
// for each other, one slice for the one and another for the other.
bool ServerJob::mirrors() const {
  const bool rounds_known = !combines(policy) || has_fixed_parts(policy);
  return layout.servers > 1 && (replicas > 0 || (snapshot_every > 0 && rounds_known));
}

std::size_t ServerJob::largest_push() const {
  const std::size_t count = layout.largest_slice();
  if (const std::unique_ptr<WireCode> code = make_wire_code(wire))
    return std::max(count, code->words(count)) * sizeof(float);
  if (virtual_shards == 0) return count * sizeof(float);
  const std::size_t shards = std::size_t((virtual_shards + workers - 1) / workers);
  return (shards * count + count / kExactBlock + 2) * sizeof(float);
}

std::string ServerJob::to_text() const {
  json rows = json::array();
  for (const Parameter& parameter : parameters)
    rows.push_back({parameter.spec.name, int(parameter.spec.role), parameter.spec.frozen,
                    parameter.begin, parameter.end});
  return json{{"workers", workers},
              {"policy", policy},
              {"optimizer", to_json(optimizer)},
              {"schedule", to_json(schedule)},
              {"updates_per_epoch", updates_per_epoch},
              {"epochs", epochs},
              {"updates", updates},
              {"layout", convoy::to_json(layout)},
              {"parameters", rows},
              {"virtual_shards", virtual_shards},
              {"wire", wire},
              {"buffers", buffers},
              {"course", to_json(course)},
              {"replicas", replicas},
              {"snapshot_every", snapshot_every},
              {"shared_bytes", shared_bytes},
              {"update_s_per_byte", update_s_per_byte}}
      .dump();
}

ServerJob ServerJob::from_text(const std::string& text) {
  const json object = json::parse(text);
  ServerJob job{.workers = object.at("workers"),
                .policy = object.at("policy"),
                .optimizer = optimizer_from(object.at("optimizer")),
                .schedule = schedule_from(object.at("schedule")),
                .updates_per_epoch = object.at("updates_per_epoch"),
                .epochs = object.at("epochs"),
                .updates = object.at("updates"),
                .layout = layout_from(object.at("layout")),
                .parameters = {},
                .virtual_shards = object.at("virtual_shards"),
                .wire = object.at("wire"),
                .buffers = object.at("buffers"),
                .course = course_from(object.at("course")),
                .replicas = object.at("replicas"),
                .snapshot_every = object.at("snapshot_every"),
                .shared_bytes = object.at("shared_bytes"),
                .update_s_per_byte = object.at("update_s_per_byte")};
  for (const json& row : object.at("parameters")) {
    Parameter parameter;
    parameter.spec.name = row.at(0);
    parameter.spec.role = Role(row.at(1).get<int>());
    parameter.spec.frozen = row.at(2);
    parameter.begin = row.at(3);
    parameter.end = row.at(4);
    job.parameters.push_back(std::move(parameter));
  }
  return job;
}

}  // namespace convoy
