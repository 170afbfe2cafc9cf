#include "coordinator/core/elastic/elastic_cores.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <set>

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

// Rank 0 does, for its gang.
bool speaks(const Task& task) {
  return !task.rank || task.rank->rank == 0;
}

}  // namespace

void ElasticCores::begin() {
  for (const auto& [id, task] : state_.tasks.all())
    if (task.state == TaskState::kRunning && !task.is_copied()) started(task);
}

TrainingRecord& ElasticCores::record_of(uint64_t training, const TaskSpec& spec) {
  return trainings_.try_emplace(training, quality::make_default_predictor(), spec.training_goal)
      .first->second;
}

void ElasticCores::started(const Task& task) {
  if (!task.spec.is_elastic() || (task.spec.is_gang() && !task.rank)) return;
  auto& job = jobs_[task.id];
  job = {};
  job.attempt = {task.id, task.attempt};
  job.training = task.rank ? task.rank->gang : task.id;
  job.node = task.node;
  job.milli_units = task.spec.units * static_cast<uint32_t>(kMilli);
  record_of(job.training, task.spec);
  changed_ = true;
}

void ElasticCores::reported(const Task& task, const JobPoint& report) {
  const auto found = jobs_.find(task.id);
  const auto* node = state_.registry.find(task.node);
  if (found == jobs_.end() || !node) return;
  auto& job = found->second;
  const bool steady = report.milli_units > 0 && report.milli_units == job.reported;
  job.reported = report.milli_units;
  // A node takes back by itself what other tasks need.
  if (report.milli_units > 0 && report.milli_units != job.milli_units)
    note(job, report.milli_units);
  if (!speaks(task)) return;
  record_of(job.training, task.spec)
      .add(report, steady ? report.milli_units / kMilli * node->facts.cores_per_unit() : 0);
}

void ElasticCores::reported_before(const Task& task, const JobPoint& report) {
  if (const auto found = jobs_.find(task.id); found != jobs_.end() && speaks(task))
    record_of(found->second.training, task.spec).add(report, 0);
}

bool ElasticCores::forget_ended() {
  const bool some = std::erase_if(jobs_, [&](const auto& item) {
                      const auto* task = state_.tasks.find(item.first);
                      return !task || task->state != TaskState::kRunning || task->is_copied() ||
                             task->attempt != item.second.attempt.attempt;
                    }) > 0;
  std::set<uint64_t> running;
  for (const auto& [id, job] : jobs_) running.insert(job.training);
  std::erase_if(trainings_, [&](const auto& item) {
    if (running.contains(item.first)) return false;
    const auto* task = state_.tasks.find(item.first);
    return !task || is_ended(task->state) || !task->spec.is_gang();
  });
  return some;
}

void ElasticCores::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (trainings_.empty()) return;
  if (forget_ended() || changed_) next_ns_ = std::min(next_ns_, now_ns + kSoonNs);
  changed_ = false;
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + state_.settings.elastic_period_ms * 1'000'000;
  auto deals = groups_by_node();
  std::vector<quality::NodeShares> shares;
  for (auto& deal : deals) {
    deal_out(deal);
    shares.push_back(std::move(deal.shares));
  }
  quality::even_out(shares);
  for (size_t i = 0; i < deals.size(); ++i) {
    deals[i].shares = std::move(shares[i]);
    if (deals[i].node->can_be_asked()) hand_out(deals[i]);
  }
}

std::vector<ElasticCores::Deal> ElasticCores::groups_by_node() {
  std::map<std::string, std::map<uint64_t, Group>> by_node;
  for (auto& [id, job] : jobs_)
    by_node[job.node][job.training].emplace_back(state_.tasks.find(id), &job);
  std::vector<Deal> deals;
  for (auto& [name, groups] : by_node) {
    const auto* node = state_.registry.find(name);
    if (!node) continue;
    auto& deal = deals.emplace_back();
    deal.node = node;
    for (auto& [training, group] : groups) deal.groups.push_back(std::move(group));
  }
  return deals;
}

quality::JobState ElasticCores::describe(const Group& group, double cores_per_unit) const {
  const auto& task = *group.front().first;
  const auto ranks = static_cast<double>(group.size());
  quality::JobState state;
  state.id = group.front().second->training;
  state.ranks_here = ranks;
  state.weight = task.spec.training_goal.weight;
  state.arrival_s = static_cast<double>(task.started_ms) / 1e3;
  if (const int64_t deadline_ms = task.spec.training_goal.deadline_ms; deadline_ms > 0)
    state.deadline_s = static_cast<double>(task.submitted_ms + deadline_ms) / 1e3;
  state.min_cores = ranks * task.spec.units * cores_per_unit;
  state.max_cores = ranks * task.spec.max_units * cores_per_unit;
  for (const auto& [each, job] : group) state.cores += job->milli_units / kMilli * cores_per_unit;
  trainings_.at(state.id).describe(state);
  return state;
}

// On a node that cannot be asked everybody keeps what he has.
void ElasticCores::deal_out(Deal& deal) {
  const auto& facts = deal.node->facts;
  double least_units = 0;
  auto& [jobs, given] = deal.shares;
  for (const auto& group : deal.groups) {
    least_units += static_cast<double>(group.size()) * group.front().first->spec.units;
    jobs.push_back(describe(group, facts.cores_per_unit()));
    given.push_back(jobs.back().cores);
  }
  if (!deal.node->can_be_asked()) return;
  // What is assigned takes its units before long, if it has not yet.
  const double others = std::max(0.0, deal.node->assigned_units - least_units);
  deal.cores = {.total = std::max(least_units, facts.units - others) * facts.cores_per_unit(),
                .unit = kLeastPart_cores,
                .period_s = static_cast<double>(state_.settings.elastic_period_ms) / 1e3,
                .now_s = static_cast<double>(state_.clock.wall_ms()) / 1e3};
  given = allocator_->allocate(jobs, deal.cores);
  raise_to_least(jobs, given);
}

void ElasticCores::hand_out(Deal& deal) {
  struct Order {
    const Task* task;
    Job* job;
    uint32_t milli_units;
  };
  const double cores_per_unit = deal.node->facts.cores_per_unit();
  std::vector<Order> orders;
  for (size_t i = 0; i < deal.groups.size(); ++i) {
    auto& state = deal.shares.jobs[i];
    state.cores = deal.shares.given[i];
    const auto why = explain(state, deal.cores, cores_per_unit, trainings_.at(state.id));
    const double units = state.cores / state.ranks_here / cores_per_unit;
    for (const auto& [task, job] : deal.groups[i]) {
      job->share.reason = why.reason;
      job->share.loss_left = why.loss_left;
      job->share.gain = why.gain;
      job->share.gain_of_one_more = why.gain_of_one_more;
      orders.push_back({task, job, static_cast<uint32_t>(std::floor(units * kMilli))});
    }
  }
  // Who shrinks goes first: a node gives nobody what another one still has.
  std::stable_partition(orders.begin(), orders.end(), [](const Order& each) {
    return each.milli_units <= each.job->milli_units;
  });
  for (const auto& [task, job, milli_units] : orders) order(*task, *job, milli_units);
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
  note(job, *milli_units);
  ++changes_;
}

void ElasticCores::note(Job& job, uint32_t milli_units) {
  const auto* node = state_.registry.find(job.node);
  job.milli_units = milli_units;
  job.share.units = milli_units / kMilli;
  job.share.cores = job.share.units * (node ? node->facts.cores_per_unit() : 1);
  job.share.since_ms = state_.clock.wall_ms();
}

CoreShare ElasticCores::explain(const quality::JobState& state, const quality::Cores& cores,
                                double cores_per_unit, const TrainingRecord& record) const {
  CoreShare share;
  share.loss_left = record.loss_left();
  if (const auto why = record.not_foretold(); !why.empty()) {
    share.reason = why + ": its equal share";
    return share;
  }
  auto unweighted = state;  // in the parts that `loss_left` is in
  unweighted.weight = 1;
  unweighted.largest_change = record.fall();
  const auto gain_on = [&](double on) {
    const double fall =
        quality::predicted_gain(unweighted, cores.period_s, std::min(on, state.max_cores), 0);
    return std::min(fall, share.loss_left.value_or(0));
  };
  share.gain = gain_on(state.cores);
  share.gain_of_one_more = gain_on(state.cores + state.ranks_here * cores_per_unit) - *share.gain;
  share.reason = allocator_->hindrance();
  if (share.reason.empty()) share.reason = allocator_->reason(record.family());
  if (share.reason.empty())
    share.reason = fmt::format("by '{}'", state_.settings.elastic_allocator);
  return share;
}

CoreShare ElasticCores::shown(uint64_t task, const Job& job) const {
  const auto& known = *state_.tasks.find(task);
  auto share = job.share;
  share.task = task;
  share.name = known.spec.name;
  if (share.since_ms == 0) {
    const auto* node = state_.registry.find(job.node);
    share.units = job.milli_units / kMilli;
    share.cores = share.units * (node ? node->facts.cores_per_unit() : 1);
    share.since_ms = known.started_ms;
    share.reason = "it has just started: its least";
  }
  return share;
}

std::optional<CoreShare> ElasticCores::share_of(uint64_t task) const {
  std::optional<CoreShare> least;
  for (const auto& [id, job] : jobs_) {
    const auto* known = state_.tasks.find(id);
    if ((id != task && job.training != task) || !known || known->state != TaskState::kRunning)
      continue;
    auto share = shown(id, job);
    if (!least || share.cores < least->cores) least = std::move(share);
  }
  return least;
}

std::vector<CoreShare> ElasticCores::shared_with(uint64_t task) const {
  std::set<std::string> nodes;
  std::set<uint64_t> own;
  for (const auto& [id, job] : jobs_)
    if (id == task || job.training == task) {
      nodes.insert(job.node);
      own.insert(job.training);
    }
  std::vector<CoreShare> shares;
  for (const auto& [id, job] : jobs_) {
    const auto* known = state_.tasks.find(id);
    if (nodes.contains(job.node) && !own.contains(job.training) && known &&
        known->state == TaskState::kRunning)
      shares.push_back(shown(id, job));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.cores > b.cores; });
  return shares;
}

}  // namespace tierpilot
