#include "coordinator/core/elastic/elastic_cores.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "policies/quality/gain_curve.h"

namespace tierpilot {
namespace {

constexpr double kMilli = 1000;
constexpr double kLeastPart_cores = 0.05;
constexpr int64_t kSoonNs = 500'000'000;  // after one has come or gone

// Nobody has less than it asked for; the others pay by what they have above that.
void raise_to_least(const std::vector<quality::JobState>& jobs, std::vector<double>& given) {
  double missing = 0, spare = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    missing += std::max(0.0, jobs[i].min_cores - given[i]);
    spare += std::max(0.0, given[i] - jobs[i].min_cores);
  }
  const double kept = spare > 0 ? std::max(0.0, 1 - missing / spare) : 0;
  for (size_t i = 0; i < jobs.size(); ++i)
    given[i] = jobs[i].min_cores + kept * std::max(0.0, given[i] - jobs[i].min_cores);
}

}  // namespace

void ElasticCores::begin() {
  for (const auto& [id, task] : state_.tasks.all())
    if (task.state == TaskState::kRunning && !task.is_copied()) started(task);
}

void ElasticCores::started(const Task& task) {
  if (!task.spec.is_elastic()) return;
  const auto [found, is_new] =
      jobs_.try_emplace(task.id, quality::make_default_predictor(), task.spec.training_goal);
  auto& job = found->second;
  job.attempt = {task.id, task.attempt};
  job.node = task.node;
  job.milli_units = task.spec.units * static_cast<uint32_t>(kMilli);
  job.told = false;
  changed_ = true;
}

void ElasticCores::reported(const Task& task, const JobPoint& report) {
  const auto found = jobs_.find(task.id);
  const auto* node = state_.registry.find(task.node);
  if (found == jobs_.end() || !node) return;
  auto& job = found->second;
  const bool steady = report.milli_units > 0 && report.milli_units == job.reported;
  job.record.add(report, steady ? report.milli_units / kMilli * node->facts.cores_per_unit() : 0);
  job.reported = report.milli_units;
  if (report.milli_units > 0) job.milli_units = report.milli_units;
}

void ElasticCores::reported_before(const Task& task, const JobPoint& report) {
  if (const auto found = jobs_.find(task.id); found != jobs_.end())
    found->second.record.add(report, 0);
}

bool ElasticCores::forget_ended() {
  return std::erase_if(jobs_, [&](const auto& item) {
           const auto* task = state_.tasks.find(item.first);
           return !task || task->state != TaskState::kRunning || task->is_copied() ||
                  task->attempt != item.second.attempt.attempt;
         }) > 0;
}

void ElasticCores::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (jobs_.empty()) return;
  if (forget_ended() || changed_) next_ns_ = std::min(next_ns_, now_ns + kSoonNs);
  changed_ = false;
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + state_.settings.elastic_period_ms * 1'000'000;
  std::map<std::string, Jobs> by_node;
  for (auto& [id, job] : jobs_) by_node[job.node].emplace_back(state_.tasks.find(id), &job);
  for (const auto& [name, jobs] : by_node)
    if (const auto* node = state_.registry.find(name); node && node->can_be_asked())
      deal_out(*node, jobs);
}

void ElasticCores::deal_out(const NodeRecord& node, const Jobs& jobs) {
  const double cores_per_unit = node.facts.cores_per_unit();
  double least_units = 0;
  std::vector<quality::JobState> states;
  for (const auto& [task, job] : jobs) {
    least_units += task->spec.units;
    auto& state = states.emplace_back();
    state.id = task->id;
    state.weight = task->spec.training_goal.weight;
    state.arrival_s = static_cast<double>(task->started_ms) / 1e3;
    if (const int64_t deadline_ms = task->spec.training_goal.deadline_ms; deadline_ms > 0)
      state.deadline_s = static_cast<double>(task->submitted_ms + deadline_ms) / 1e3;
    state.min_cores = task->spec.units * cores_per_unit;
    state.max_cores = task->spec.max_units * cores_per_unit;
    state.cores = job->milli_units / kMilli * cores_per_unit;
    job->record.describe(state);
  }
  // What is assigned takes its units before long, if it has not yet.
  const double others = std::max(0.0, node.assigned_units - least_units);
  const quality::Cores cores{
      .total = std::max(least_units, node.facts.units - others) * cores_per_unit,
      .unit = kLeastPart_cores,
      .period_s = static_cast<double>(state_.settings.elastic_period_ms) / 1e3,
      .now_s = static_cast<double>(state_.clock.wall_ms()) / 1e3};
  auto given = allocator_->allocate(states, cores);
  raise_to_least(states, given);
  std::vector<std::pair<uint32_t, size_t>> orders;
  for (size_t i = 0; i < jobs.size(); ++i) {
    orders.emplace_back(static_cast<uint32_t>(std::floor(given[i] / cores_per_unit * kMilli)), i);
    states[i].cores = given[i];
    explain(states[i], cores, cores_per_unit, *jobs[i].second);
  }
  // Who shrinks goes first: a node gives nobody what another one still has.
  std::stable_partition(orders.begin(), orders.end(), [&](const auto& each) {
    return each.first <= jobs[each.second].second->milli_units;
  });
  for (const auto& [milli_units, i] : orders) order(*jobs[i].first, *jobs[i].second, milli_units);
}

void ElasticCores::order(const Task& task, Job& job, uint32_t milli_units) {
  constexpr uint32_t kNotWorthIt = 20;  // thousandths
  const uint32_t change =
      std::max(milli_units, job.milli_units) - std::min(milli_units, job.milli_units);
  if (job.told && change <= kNotWorthIt) return;
  job.told = true;
  auto* node = state_.registry.find(task.node);
  node->link->set_share(job.attempt, milli_units,
                        [self = std::weak_ptr(self_), attempt = job.attempt](auto got) {
                          if (const auto alive = self.lock()) (*alive)->answered(attempt, got);
                        });
}

void ElasticCores::answered(AttemptId attempt, const Result<uint32_t>& milli_units) {
  const auto found = jobs_.find(attempt.task);
  if (found == jobs_.end() || found->second.attempt != attempt) return;
  auto& job = found->second;
  if (!milli_units) {
    // It has ended by now, or its node is of before there were shares.
    spdlog::debug("task {} keeps its cores: {}", attempt.task, milli_units.error().message);
    return;
  }
  const auto* node = state_.registry.find(job.node);
  job.milli_units = *milli_units;
  job.share.units = *milli_units / kMilli;
  job.share.cores = job.share.units * (node ? node->facts.cores_per_unit() : 1);
  job.share.since_ms = state_.clock.wall_ms();
  ++changes_;
}

void ElasticCores::explain(const quality::JobState& state, const quality::Cores& cores,
                           double cores_per_unit, Job& job) const {
  auto& share = job.share;
  share.loss_left = job.record.loss_left();
  share.gain.reset();
  share.gain_of_one_more.reset();
  if (const auto why = job.record.not_foretold(); !why.empty()) {
    share.reason = why + ": its equal share";
    return;
  }
  const auto gain_on = [&](double on) {
    return quality::predicted_gain(state, cores.period_s, std::min(on, state.max_cores), 0);
  };
  share.gain = gain_on(state.cores);
  share.gain_of_one_more = gain_on(state.cores + cores_per_unit) - *share.gain;
  if (share.reason = allocator_->hindrance(); !share.reason.empty()) return;
  share.reason = allocator_->reason(job.record.family());
  if (share.reason.empty())
    share.reason = fmt::format("by '{}'", state_.settings.elastic_allocator);
}

std::optional<CoreShare> ElasticCores::share_of(uint64_t task) const {
  const auto found = jobs_.find(task);
  const auto* known = state_.tasks.find(task);
  if (found == jobs_.end() || !known || known->state != TaskState::kRunning) return {};
  const auto& job = found->second;
  auto share = job.share;
  share.task = task;
  share.name = known->spec.name;
  if (share.since_ms == 0) {
    const auto* node = state_.registry.find(job.node);
    share.units = job.milli_units / kMilli;
    share.cores = share.units * (node ? node->facts.cores_per_unit() : 1);
    share.since_ms = known->started_ms;
    share.reason = "it has just started: its least";
  }
  return share;
}

std::vector<CoreShare> ElasticCores::shared_with(uint64_t task) const {
  std::vector<CoreShare> shares;
  const auto own = jobs_.find(task);
  if (own == jobs_.end()) return shares;
  for (const auto& [id, job] : jobs_)
    if (id != task && job.node == own->second.node)
      if (auto share = share_of(id)) shares.push_back(std::move(*share));
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.cores > b.cores; });
  return shares;
}

}  // namespace tierpilot
