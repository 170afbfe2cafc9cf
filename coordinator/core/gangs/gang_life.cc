#include "coordinator/core/gangs/gang_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "base/log.h"
#include "coordinator/core/decisions/assignment.h"
#include "coordinator/core/gangs/checkpoints.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr int64_t kStartWithin_ms = 120'000;

// Where other nodes reach the node, as they reach its data; nodes of one machine meet on loopback.
std::string address_of(const NodeFacts& facts) {
  const std::string& data = facts.data_address;
  if (!data.starts_with("tls:")) return "127.0.0.1";
  return data.substr(4, data.rfind(':') - 4);
}

DecisionRecord describe(const Task& gang, const GangPlan& plan, const std::string& policy) {
  DecisionRecord record;
  record.attempt = {gang.id, gang.attempt};
  record.policy = policy;
  record.node = plan.ranks.front().node;
  record.reason = plan.reason;
  record.considered = static_cast<uint32_t>(plan.nodes.size());
  for (const auto& node : plan.nodes) record.eligible += node.eligible;
  constexpr size_t kMostNodes = 64;
  record.candidates = plan.nodes;
  std::stable_partition(record.candidates.begin(), record.candidates.end(),
                        [](const auto& node) { return node.eligible; });
  if (record.candidates.size() > kMostNodes) record.candidates.resize(kMostNodes);
  return record;
}

bool is_live(const Task& rank) {
  return rank.state == TaskState::kAssigned || rank.state == TaskState::kRunning;
}

// Signals that hardware and kernel send, or whoever ends a process from outside.
bool is_fault_signal(int signal) {
  return signal == SIGKILL || signal == SIGBUS || signal == SIGSEGV || signal == SIGILL ||
         signal == SIGFPE || signal == SIGABRT;
}

std::vector<std::string> units_of(const Task& rank) {
  std::vector<std::string> units;
  for (const auto& gpu : rank.rank->gpus) units.push_back(gpu_unit_id(rank.node, gpu));
  if (units.empty())
    for (const uint32_t number : rank.rank->cpu_units)
      units.push_back(cpu_unit_id(rank.node, number));
  return units;
}

// What was made of the end of a rank that is over, by what is on disk of it.
Verdict verdict_of(const Task& rank) {
  if (!rank.exit) return {Fate::kAgain, rank.reason, false};
  auto verdict = judge(rank, *rank.exit, UINT32_MAX, false);
  // With the others: what ended these is what counts.
  if (verdict.fate == Fate::kCancelled) verdict = {Fate::kAgain, verdict.reason, false};
  return verdict;
}

// How likely it is what ended the others.
int severity(const Task& rank) {
  if (!rank.exit) return rank.rank->pid != 0 ? 3 : 0;  // its node was lost
  if (rank.exit->how == TaskEnd::kCancelled ||
      (rank.exit->how == TaskEnd::kExited && rank.exit->code == 0))
    return 0;
  if (rank.exit->how == TaskEnd::kExited) return 1;
  return rank.exit->how == TaskEnd::kSignalled && rank.exit->code == SIGABRT ? 2 : 3;
}

}  // namespace

void GangLife::begin() {
  std::vector<uint64_t> gangs;
  for (const auto& [id, task] : state_.tasks.all()) {
    if (task.rank && is_live(task))
      for (const auto& unit : units_of(task)) state_.units.take(unit, task.rank->gang);
    if (task.spec.is_gang() && is_live(task)) gangs.push_back(id);
  }
  for (const uint64_t id : gangs) {
    auto& gang = *state_.tasks.find(id);
    auto& current = tries_[id];
    current.attempt = gang.attempt;
    for (const uint64_t rank_id : state_.tasks.ranks_of(id)) {
      const auto& rank = *state_.tasks.find(rank_id);
      if (is_live(rank)) continue;
      const auto& verdict = current.over[rank.rank->rank] = verdict_of(rank);
      if (verdict.fate == Fate::kSucceeded) continue;
      current.stopping = true;
      if (!current.first_bad) current.first_bad = rank.rank->rank;
    }
    if (gang.cancel_asked || current.stopping) stop(gang, "its gang is ending");
    if (current.over.size() == gang.spec.gang.ranks)
      conclude(gang);
    else
      look_whether_all_run(gang);
    if (gang.state == TaskState::kAssigned && tries_.contains(id)) watch_start(gang);
  }
}

void GangLife::place(Task& gang, const GangPlan& plan) {
  const int64_t begin_ns = state_.clock.boot_ns();
  state_.tasks.advance(gang, TaskState::kAssigned);
  gang.attempt = state_.next_attempt(gang);
  gang.policy = "gang/" + state_.settings.gang_policy;
  gang.reason.clear();
  auto& current = tries_[gang.id] = {.attempt = gang.attempt, .ranks = {}, .over = {}};
  current.checkpoint = newest_checkpoint(state_, gang.id);
  auto changed = std::make_shared<std::vector<Task>>();
  const auto& ids = state_.tasks.ranks_of(gang.id);
  for (uint32_t i = 0; i < ids.size(); ++i) {
    auto& rank = *state_.tasks.find(ids[i]);
    const auto& [on, place] = plan.ranks[i];
    auto& node = *state_.registry.find(on);
    state_.tasks.advance(rank, TaskState::kAssigned);
    rank.attempt = gang.attempt;
    rank.node = on;
    rank.policy = gang.policy;
    rank.reason.clear();
    rank.exit.reset();
    rank.served.reset();
    rank.started_ms = 0;
    rank.cancel_asked = false;
    rank.rank->pid = 0;
    rank.rank->cpu_units.clear();
    rank.rank->gpus = place.gpus;
    for (const auto& gpu : place.gpus) state_.units.take(gpu_unit_id(on, gpu), gang.id);
    state_.registry.assign(node, {rank.id, rank.attempt}, rank.spec.units);
    node.count(rank, 0, 0);
    current.ranks.push_back({plan.ranks[i]});
    changed->push_back(rank);
  }
  auto record = describe(gang, plan, gang.policy);
  if (!current.checkpoint.empty()) record.reason += ", from " + current.checkpoint;
  record.at_ms = state_.clock.wall_ms();
  record.decide_ns = state_.clock.boot_ns() - begin_ns;
  changed->push_back(gang);
  state_.store.write(
      [changed, record](Db& db) -> Status {
        for (const auto& task : *changed)
          if (auto put = records::update_task(db, task); !put) return put;
        return records::put_decision(db, record);
      },
      [this, id = gang.id, attempt = gang.attempt](Status status) {
        committed(id, attempt, status);
      });
}

GangLife::Try* GangLife::current(uint64_t gang, uint32_t attempt) {
  const auto found = tries_.find(gang);
  return found == tries_.end() || found->second.attempt != attempt ? nullptr : &found->second;
}

void GangLife::committed(uint64_t id, uint32_t attempt, const Status& status) {
  auto* gang = state_.tasks.find(id);
  auto* now = current(id, attempt);
  if (!gang || !now || now->stopping) return;
  if (!status) {
    now->counts = false;
    return stop(*gang, status.error().message);
  }
  watch_start(*gang);
  send(*gang, *now, 0, 0);
}

void GangLife::send(Task& gang, Try& now, uint32_t number, uint16_t master_port) {
  auto& rank = *state_.tasks.find(state_.tasks.ranks_of(gang.id)[number]);
  if (!is_live(rank)) return;
  const AttemptId attempt{rank.id, rank.attempt};
  auto* node = state_.registry.find(rank.node);
  const auto* first = state_.registry.find(now.ranks.front().on.node);
  // Away: when it comes back it says that it does not hold the attempt, or its lease ends.
  now.ranks[number].told = true;
  if (!node || !node->link || !first) return;
  if (node->is_closed()) return lifecycle_.take_back(rank.node, attempt, node->closed_because());
  auto assignment = make_assignment(state_, rank, rank.node, now.checkpoint);
  assignment.spec.name = gang.spec.name;
  assignment.user = gang.user;
  assignment.rank = RankAssignment{.gang = gang.id,
                                   .rank = number,
                                   .world_size = gang.spec.gang.ranks,
                                   .place = now.ranks[number].on.place,
                                   .master_address = address_of(first->facts),
                                   .master_port = master_port,
                                   .restarts = gang.restarts};
  node->link->start(assignment,
                    [this, attempt, id = gang.id, name = rank.node](Result<uint16_t> taken) {
                      answered(attempt, id, name, taken);
                    });
}

void GangLife::answered(AttemptId attempt, uint64_t id, const std::string& node,
                        const Result<uint16_t>& taken) {
  if (!taken && taken.error().code != ErrorCode::kUnreachable)
    lifecycle_.refused(node, attempt, taken.error());
  auto* gang = state_.tasks.find(id);
  auto* now = current(id, attempt.attempt);
  const auto* rank = state_.tasks.find(attempt.task);
  if (!taken || !gang || !now || now->stopping || !rank || rank->rank->rank != 0) return;
  for (uint32_t number = 1; number < gang->spec.gang.ranks && !now->stopping; ++number)
    if (!now->ranks[number].told) send(*gang, *now, number, *taken);
}

void GangLife::watch_start(const Task& gang) {
  const int64_t within_ms =
      gang.spec.gang.start_within_ms > 0 ? gang.spec.gang.start_within_ms : kStartWithin_ms;
  after_(within_ms * 1000, [this, id = gang.id, attempt = gang.attempt, within_ms] {
    auto* late = state_.tasks.find(id);
    if (!late || !current(id, attempt) || late->state != TaskState::kAssigned) return;
    for (const uint64_t rank_id : state_.tasks.ranks_of(id))
      if (const auto& rank = *state_.tasks.find(rank_id); rank.state == TaskState::kAssigned)
        return stop(*late, fmt::format("rank {} did not start on node '{}' within {} s",
                                       rank.rank->rank, rank.node, within_ms / 1000));
  });
}

void GangLife::rank_started(Task& rank) {
  for (const auto& unit : units_of(rank)) state_.units.take(unit, rank.rank->gang);
  look_whether_all_run(*state_.tasks.find(rank.rank->gang));
}

void GangLife::look_whether_all_run(Task& gang) {
  if (gang.state != TaskState::kAssigned) return;
  for (const uint64_t id : state_.tasks.ranks_of(gang.id))
    if (state_.tasks.find(id)->state != TaskState::kRunning) return;
  lifecycle_.gang_started(gang);
}

void GangLife::rank_over(Task& rank, const Verdict& verdict) {
  for (const auto& unit : units_of(rank)) state_.units.give_back(unit);
  auto& gang = *state_.tasks.find(rank.rank->gang);
  auto* now = current(gang.id, rank.attempt);
  if (!now || !now->over.emplace(rank.rank->rank, verdict).second) return;
  if (verdict.fate != Fate::kSucceeded && !now->stopping) {
    now->first_bad = rank.rank->rank;
    stop(gang, fmt::format("rank {} of its gang ended: {}", rank.rank->rank, verdict.reason));
  }
  now = current(gang.id, gang.attempt);  // stopping it may have ended it
  if (now && now->over.size() == gang.spec.gang.ranks) conclude(gang);
}

void GangLife::stop(Task& gang, const std::string& why) {
  const uint32_t attempt = gang.attempt;
  auto* now = current(gang.id, attempt);
  if (!now) return;
  now->stopping = true;
  if (gang.reason.empty()) gang.reason = why;
  const auto ids = state_.tasks.ranks_of(gang.id);
  for (uint32_t number = 0; number < ids.size(); ++number) {
    auto* rank = state_.tasks.find(ids[number]);
    now = current(gang.id, attempt);
    if (!rank || !now) return;
    if (!is_live(*rank)) continue;
    const AttemptId rank_attempt{rank->id, rank->attempt};
    if (!now->ranks.empty() && !now->ranks[number].told) {
      lifecycle_.take_back(rank->node, rank_attempt, why);
      continue;
    }
    rank->cancel_asked = true;  // also when its node is away and comes back
    if (auto* node = state_.registry.find(rank->node); node && node->link)
      node->link->cancel(rank_attempt, why);
  }
}

const Task* GangLife::culprit(const Task& gang, const Try& last) const {
  if (!last.first_bad) return nullptr;
  const auto& ids = state_.tasks.ranks_of(gang.id);
  const auto* worst = state_.tasks.find(ids[*last.first_bad]);
  // One that dies takes the others along, and their own errors may be told first.
  for (const uint64_t id : ids) {
    const auto* rank = state_.tasks.find(id);
    if (severity(*rank) > severity(*worst)) worst = rank;
  }
  return worst;
}

bool GangLife::blame_units(const Task& gang, const Task& culprit) {
  if (culprit.rank->pid == 0) return false;
  const auto& exit = culprit.exit;
  const bool by_signal = exit && exit->how == TaskEnd::kSignalled && is_fault_signal(exit->code);
  const bool node_lost =
      !exit || exit->how == TaskEnd::kLeaseExpired || exit->how == TaskEnd::kLost;
  const auto kind = node_lost ? std::string("node lost")
                              : fmt::format("{} {}", task_end_name(exit->how), exit->code);
  const auto units = units_of(culprit);
  // Of those that were cancelled while they waited nobody tells.
  std::erase_if(blames_, [&](const auto& blame) { return !state_.tasks.find(blame.first); });
  auto& before = blames_[gang.id];
  const bool elsewhere = !node_lost && before.kind == kind && !before.units.empty() &&
                         std::none_of(units.begin(), units.end(), [&](const auto& unit) {
                           return before.units.contains(unit);
                         });
  before = {kind, {units.begin(), units.end()}};
  if (elsewhere) {
    state_.units.forgive(gang.id);
    state_.store.write([id = gang.id](Db& db) { return records::remove_unit_failures(db, id); },
                       nullptr);
    return true;
  }
  if (!by_signal && !node_lost) return false;
  for (const auto& unit : units) count({state_.clock.wall_ms(), unit, kind, gang.id});
  return false;
}

void GangLife::count(const UnitFailure& failure, std::function<void(Status)> written) {
  state_.units.failed(failure);
  state_.store.write([failure](Db& db) { return records::put_unit_failure(db, failure); },
                     std::move(written));
  quarantine(failure.unit);
}

void GangLife::unit_failed(const std::string& unit, const std::string& kind,
                           const std::string& detail, std::function<void(Status)> written) {
  if (!state_.units.is_known(unit)) {
    if (written) written({});
    return;
  }
  const auto why = fmt::format("unit {}: {}: {}", unit, kind, detail);
  note(state_, std::string(parse_unit_id(unit)->node), "a unit failed", why);
  count({state_.clock.wall_ms(), unit, kind, 0}, std::move(written));
  auto* gang = state_.tasks.find(state_.units.user_of(unit));
  auto* now = gang ? current(gang->id, gang->attempt) : nullptr;
  if (!now) return;
  now->device_fault = why;
  stop(*gang, why);
}

void GangLife::quarantine(const std::string& unit) {
  const int64_t now_ms = state_.clock.wall_ms();
  const auto reason = state_.units.quarantine_reason(unit, state_.settings.quarantine_failures,
                                                     now_ms - state_.settings.quarantine_window_ms);
  if (reason.empty()) return;
  spdlog::warn("unit {}: quarantined {}", unit, reason);
  state_.units.drain(unit, reason);
  state_.store.write(
      [unit, now_ms, reason](Db& db) { return records::put_unit_drain(db, unit, now_ms, reason); },
      nullptr);
}

Verdict GangLife::judge_try(Task& gang, const Try& last) {
  if (gang.cancel_asked && last.stopping) return {Fate::kCancelled, "cancelled"};
  if (!last.stopping) return {Fate::kSucceeded, {}};
  if (!last.device_fault.empty()) return {Fate::kAgain, last.device_fault, false};
  // It was only asked to end: a late start, say.
  Verdict verdict{Fate::kAgain, gang.reason, last.counts};
  bool elsewhere = false;
  if (const auto* cause = culprit(gang, last)) {
    verdict = last.over.at(cause->rank->rank);
    verdict.reason = fmt::format("rank {} on node '{}': {}", cause->rank->rank, cause->node,
                                 verdict.reason.empty() ? "ended" : verdict.reason);
    elsewhere = blame_units(gang, *cause);
  }
  if (verdict.fate == Fate::kAgain) {
    const uint32_t tries = counted_tries(gang);
    if (verdict.node_lost && may_forgive(gang)) verdict.counts = false;
    if (!verdict.counts || tries < state_.settings.max_attempts) return verdict;
    return {Fate::kFailed,
            fmt::format("{} (try {} of {})", verdict.reason, tries, state_.settings.max_attempts)};
  }
  const uint32_t most = gang.spec.gang.max_restarts;
  if (elsewhere && gang.restarts < most)
    return {Fate::kFailed,
            verdict.reason + ": as on other units before, so that it is the program's own fault"};
  if (gang.restarts >= most)
    return {Fate::kFailed, gang.restarts == 0 ? verdict.reason
                                              : fmt::format("{} (after {} restarts)",
                                                            verdict.reason, gang.restarts)};
  ++gang.restarts;
  return {Fate::kAgain, verdict.reason, false};
}

void GangLife::conclude(Task& gang) {
  const auto last = tries_.extract(gang.id);
  auto verdict = judge_try(gang, last.mapped());
  if (verdict.fate != Fate::kAgain) blames_.erase(gang.id);
  if (gang.state != TaskState::kRunning) gang.started_ms = 0;
  lifecycle_.finish(gang, std::move(verdict), nullptr);
}

}  // namespace tierpilot
