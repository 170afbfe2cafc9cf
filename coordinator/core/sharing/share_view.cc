// The cluster's shared units and the jobs on them, as policies see them.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/outcomes/told_task.h"
#include "coordinator/core/sharing/promise_words.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/core/sharing/share_waits.h"
#include "model/unit_id.h"

#include "policies/sharing/live/trial.h"

namespace tierpilot {

using sharing::JobClass;

namespace {

JobClass class_of(const TaskSpec& spec) {
  return spec.share.latency_sensitive ? JobClass::kLatencySensitive : JobClass::kBestEffort;
}

// Of cores what it is to have counts as its use, of GPUs only what is known of it.
sharing::Sharer as_sharer(const TaskSpec& spec, const ShareForecast& forecast, uint32_t need_milli,
                          double use_milli) {
  const bool on_gpu = spec.has_gpu_share();
  return {.name = spec.name,
          .on = on_gpu ? sharing::UnitKind::kGpu : sharing::UnitKind::kCores,
          .milli = on_gpu ? use_milli : need_milli,
          .memory_bytes = static_cast<double>(forecast.predicted.memory_bytes),
          .traffic_bytes_s = forecast.traffic_bytes_s};
}

// As refusals name it.
std::string type_name(const std::string& type, const UnitFeatures& unit) {
  std::string name = type;
  if (unit.cores != 1) name += fmt::format(", {:g} cores", unit.cores);
  if (unit.speed.times != 1) name += fmt::format(", {:.2f} times as fast", unit.speed.times);
  // What is as fast, and less surely so, is another type: promises differ.
  if (unit.speed.sd != CoreSpeed{}.sd) name += fmt::format(", {:.0f} % off", 100 * unit.speed.sd);
  return name;
}

bool has(const sharing::LiveNode& node, const std::string& type) {
  return std::any_of(node.begin(), node.end(), [&](const auto& unit) { return unit.type == type; });
}

// Nothing speaks against new work on it. Of groups of cores nothing is told.
bool is_sound(const UnitBook& units, const NodeRecord& node, size_t unit) {
  const auto& gpu = node.facts.shared_units[unit].gpu;
  const auto id = gpu_unit_id(node.facts.name, gpu);
  return gpu.empty() || (units.unhealthy_because(id).empty() && units.drained_because(id).empty());
}

// Of one unit of the type.
uint64_t most_memory(const std::vector<sharing::LiveNode>& nodes, const std::string& type) {
  uint64_t most = 0;
  for (const auto& node : nodes)
    for (const auto& unit : node)
      if (unit.type == type) most = std::max(most, unit.whole.memory_bytes);
  return most;
}

}  // namespace

UnitFeatures ShareKeeper::features(const NodeFacts& node, size_t unit) const {
  if (unit >= node.shared_units.size()) return {};
  const auto& shared = node.shared_units[unit];
  if (shared.engine() == Engine::kGpu)
    return {1, gpu_speeds_.of(shared.gpu_kind.name), shared.gpu_kind, gpu_hosts_.of(node).times};
  return {shared.cores > 0 ? shared.cores : 1, speeds_.of(node)};
}

UnitFeatures ShareKeeper::usual_unit(const TaskSpec& spec) const {
  if (!spec.has_gpu_share()) return {};
  for (const auto* node : state_.registry.up())
    for (size_t u = 0; u < node->facts.shared_units.size(); ++u)
      if (node->facts.shared_units[u].engine() == Engine::kGpu) return features(node->facts, u);
  return {};
}

RunCorrection ShareKeeper::correction(const TaskSpec& spec) const {
  auto& speeds = spec.has_gpu_share() ? gpu_speeds_ : speeds_;
  return speeds.of_model(forecasts_.model_of(spec));
}

ShareForecast ShareKeeper::forecast(const TaskSpec& spec, const UnitFeatures& unit) const {
  return forecasts_.of(spec, unit, correction(spec));
}

sharing::Sharer ShareKeeper::sharer(const Task& task, const ShareRecord& record) const {
  return as_sharer(task.spec, record.forecast(), record.need_milli(), record.use_milli());
}

sharing::LiveJob ShareKeeper::live_job(const Task& task, const Holder& holder) const {
  const auto job = known_job(task, holder);
  return is_on_trial(task) ? sharing::hoped(job) : job;
}

sharing::LiveJob ShareKeeper::known_job(const Task& task, const Holder& holder) const {
  const double now = boot_s(state_);
  const auto& record = holder.record;
  sharing::LiveJob job;
  job.id = task.id;
  job.job_class = class_of(task.spec);
  job.sharer = sharer(task, record);
  if (task.share)
    job.share = {std::max(task.share->milli, has_or_awaits(task, holder)),
                 task.share->memory_bytes};
  job.need_milli = record.need_milli();
  job.elapsed_s = record.elapsed_s(now);
  job.predicted_s = record.forecast().predicted.run_s;
  job.left_s = record.left_s(now);
  job.left_upper_s = record.left_upper_s(now);
  job.start_left_s = record.start_left_s(now);
  job.kept = record.kept();
  job.promise_left_s = promise_left_s(state_, task);
  job.takes_checkpoints = takes_checkpoints(task.id, holder);
  job.unsaved_s = record.unsaved_s(now);
  if (task.spec.share.milli > 0) job.own_milli = task.spec.share.milli;
  if (job.takes_checkpoints) job.ends_in_s = saves_in_s(task.id, record);
  job.leaves = holder.preemption.has_value();
  return job;
}

double ShareKeeper::saves_in_s(uint64_t id, const ShareRecord& record) const {
  constexpr double kToldAfter_s = 1, kAtMost = 2;  // times what it took so far, in the mean
  const double grace_s = static_cast<double>(state_.settings.preemption_grace_ms) / 1e3;
  const auto* totals = checkpoints_.totals(id);
  const auto step_s = record.step_s();
  if (!totals || totals->taken == 0 || !step_s) return grace_s;
  const double save_s =
      static_cast<double>(totals->stall_ns) / 1e9 / static_cast<double>(totals->taken);
  return std::min(grace_s, kToldAfter_s + kAtMost * (*step_s + save_s));
}

ShareKeeper::Units ShareKeeper::units(bool open_only) const {
  Units units;
  const auto awaited = engines_with_promises(state_);
  std::map<std::string, size_t> at;
  for (const auto* node : state_.registry.up()) {
    if (node->facts.shared_units.empty()) continue;
    if (open_only && (node->is_closed() || !node->can_be_asked())) continue;
    at[node->facts.name] = units.nodes.size();
    units.nodes.push_back(node);
    auto& live = units.live.emplace_back();
    for (size_t u = 0; u < node->facts.shared_units.size(); ++u) {
      const auto& unit = node->facts.shared_units[u];
      const auto of_unit = features(node->facts, u);
      auto type = type_name(unit.type, of_unit);
      // Drivers call what differs by the same name.
      if (const auto same = units.types.find(type);
          same != units.types.end() && same->second.features.gpu != of_unit.gpu)
        type += fmt::format(", {} cores of {} MHz, memory of {} MHz, {} bits", of_unit.gpu.cores,
                            of_unit.gpu.sm_clock_mhz, of_unit.gpu.memory_clock_mhz,
                            of_unit.gpu.bus_width_bits);
      units.types.try_emplace(type, UnitType{unit.engine(), of_unit});
      live.push_back({std::move(type),
                      {sharing::kWholeUnit, unit.memory_bytes},
                      {},
                      awaited.contains(unit.engine())});
    }
  }
  for (const auto& [id, holder] : holders_) {
    const auto* task = state_.tasks.find(id);
    const auto node = at.find(holder.node);
    if (!task || !task->share || node == at.end()) continue;
    auto& live = units.live[node->second];
    if (task->share->unit < live.size())
      live[task->share->unit].jobs.push_back(live_job(*task, holder));
  }
  return units;
}

sharing::WaitingJob ShareKeeper::waiting_job(uint64_t id, const TaskSpec& spec,
                                             double promise_left_s, const Units& units) const {
  sharing::WaitingJob job;
  job.id = id;
  job.job_class = class_of(spec);
  job.asked = {spec.share.milli, spec.memory_bytes};
  job.promise_left_s = promise_left_s;
  const auto corrected_by = correction(spec);
  const auto usual = forecasts_.of(spec, usual_unit(spec), corrected_by);
  job.sharer = as_sharer(spec, usual, usual.predicted.milli, usual.use_milli);
  if (!spec.node.empty()) {
    const auto own = std::find_if(units.nodes.begin(), units.nodes.end(),
                                  [&](const auto* node) { return node->facts.name == spec.node; });
    if (own == units.nodes.end()) return job;
    job.only_node = static_cast<size_t>(own - units.nodes.begin());
  }
  for (const auto& [name, type] : units.types)
    if (type.engine == spec.share.engine &&
        (!job.only_node || has(units.live[*job.only_node], name))) {
      auto predicted = forecasts_.of(spec, type.features, corrected_by).predicted;
      // What is predicted nobody enforces, so a run on cores may have used more than a unit has.
      if (type.engine == Engine::kCpu && spec.memory_bytes == 0)
        predicted.memory_bytes = std::min(predicted.memory_bytes, most_memory(units.live, name));
      job.predicted.emplace(name, predicted);
    }
  return job;
}

sharing::WaitingJob ShareKeeper::waiting_job(const Task& task, const Units& units) const {
  auto job = waiting_job(task.id, task.spec, promise_left_s(state_, task), units);
  if (!is_on_trial(task)) return job;
  job = sharing::hoped(std::move(job));
  if (sharing::is_hopeless(job)) job.promise_left_s = sharing::kNoPromise;
  return job;
}

void ShareKeeper::close_unsound(Units& units) const {
  for (size_t n = 0; n < units.live.size(); ++n)
    for (size_t u = 0; u < units.live[n].size(); ++u)
      if (!is_sound(state_.units, *units.nodes[n], u)) units.live[n][u].type.clear();
}

std::vector<uint64_t> ShareKeeper::sharers_of(const std::string& unit) const {
  if (const auto cores = parse_shared_cores_id(unit)) {
    const auto on = holders_on({std::string(cores->node), cores->number});
    return {on.begin(), on.end()};
  }
  std::vector<uint64_t> sharers;
  for (const auto& [id, holder] : holders_) {
    const auto* task = state_.tasks.find(id);
    if (task && task->share && !task->share->gpu.empty() &&
        gpu_unit_id(holder.node, task->share->gpu) == unit)
      sharers.push_back(id);
  }
  return sharers;
}

std::optional<ShownShare> ended_share(const ClusterState& state, const Task& task) {
  ShownShare shown;
  shown.promise = promise_words(task, state.clock.wall_ms());
  if (!task.share && shown.promise.empty()) return std::nullopt;
  if (const double left_s = promise_left_s(state, task); left_s < sharing::kNoPromise)
    shown.promise_left_s = left_s;
  shown.forecast.by = "nothing: it never had a share";
  shown.forecast.predicted.milli = 0;
  if (!task.share || task.share->milli == 0) return shown;
  shown.given = *task.share;
  shown.forecast.by = task.share->predicted_by;
  shown.forecast.predicted.milli = task.share->predicted_milli;
  shown.forecast.predicted.run_s = task.share->predicted_s;
  if (task.share->used_milli > 0) shown.used_milli = task.share->used_milli;
  return shown;
}

std::optional<ShownShare> ShareKeeper::share_of(uint64_t id) const {
  const auto* task = state_.tasks.find(id);
  if (!task || !task->spec.is_shared() || is_ended(task->state)) return std::nullopt;
  ShownShare shown;
  if (task->share) shown.given = *task->share;
  const auto told = told_task(state_, id);
  if (!told || !*told) return std::nullopt;
  shown.promise = promise_words(**told, state_.clock.wall_ms());
  if (const double left_s = promise_left_s(state_, **told); left_s < sharing::kNoPromise)
    shown.promise_left_s = left_s;
  const auto found = holders_.find(id);
  if (found == holders_.end()) {
    shown.given = {.preemptions = shown.given.preemptions};  // it waits
    shown.forecast = forecast(task->spec, usual_unit(task->spec));
    return shown;
  }
  const auto& record = found->second.record;
  shown.forecast = record.forecast();
  shown.used_milli = record.used_milli();
  const double left_s = record.left_s(boot_s(state_));
  if (left_s > 0)
    shown.left_s =
        left_s / std::max(0.001, sharing::speed_with(shown.given.milli, record.need_milli()) *
                                     record.kept());
  shown.tells_pace = slow_downs_.measures(id);
  for (const uint64_t other : holders_on(found->second.on.value_or(UnitId{}))) {
    const auto* neighbour = state_.tasks.find(other);
    if (other == id || !neighbour) continue;
    const auto& holder = holders_.at(other);
    shown.neighbours.push_back(other);
    shown.slow_downs.push_back(
        slow_downs_.of(sharer(*task, record), {other, sharer(*neighbour, holder.record)}));
  }
  return shown;
}

}  // namespace tierpilot
