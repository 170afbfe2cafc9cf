#include "coordinator/core/gangs/gang_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "coordinator/core/decisions/assignment.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
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

// Those that ranks go to, those that had room, the rest.
int place_in_record(const CandidateRecord& node) {
  return node.ranks > 0 ? 0 : node.eligible ? 1 : 2;
}

DecisionRecord describe(const Task& gang, const GangPlan& plan, const Oversight& oversight) {
  DecisionRecord record;
  record.attempt = {gang.id, gang.attempt};
  record.policy = gang.policy;
  record.node = plan.ranks.front().node;
  record.reason = plan.reason;
  record.fallback = plan.fallback;
  record.proposed = plan.proposed;
  record.decide_ns = plan.decide_ns;
  record.gang = plan.beside;
  if (oversight.guard(gang.policy)) {
    record.mode = plan.turn->mode;
    record.arm = plan.turn->ticket.arm;
  }
  record.considered = static_cast<uint32_t>(plan.nodes.size());
  for (const auto& node : plan.nodes) record.eligible += node.eligible;
  constexpr size_t kMostNodes = 64;
  record.candidates = plan.nodes;
  std::stable_sort(
      record.candidates.begin(), record.candidates.end(),
      [](const auto& a, const auto& b) { return place_in_record(a) < place_in_record(b); });
  if (record.candidates.size() > kMostNodes) record.candidates.resize(kMostNodes);
  return record;
}

bool is_live(const Task& rank) {
  return rank.state == TaskState::kAssigned || rank.state == TaskState::kRunning;
}

// What was made of the end of a rank that is over, by what is on disk of it.
Verdict verdict_of(const Task& rank) {
  if (!rank.exit) return {Fate::kAgain, rank.reason, false};
  auto verdict = judge(rank, *rank.exit, UINT32_MAX, false);
  // With the others: what ended these is what counts.
  if (verdict.fate == Fate::kCancelled) verdict = {Fate::kAgain, verdict.reason, false};
  return verdict;
}

}  // namespace

void GangLife::begin() {
  std::vector<uint64_t> gangs;
  for (const auto& [id, task] : state_.tasks.all()) {
    if (task.rank && is_live(task))
      for (const auto& unit : units_of_rank(task)) state_.units.take(unit, task.rank->gang);
    if (task.spec.is_gang() && is_live(task)) gangs.push_back(id);
  }
  for (const uint64_t id : gangs) {
    auto& gang = *state_.tasks.find(id);
    auto& current = tries_[id];
    current.attempt = gang.attempt;
    for (const uint64_t rank_id : state_.tasks.ranks_tried(gang)) {
      const auto& rank = *state_.tasks.find(rank_id);
      if (is_live(rank)) continue;
      const auto& verdict = current.over[rank.rank->rank] = verdict_of(rank);
      if (verdict.fate == Fate::kSucceeded) continue;
      current.stopping = true;
      if (!current.first_bad) current.first_bad = rank.rank->rank;
    }
    if (gang.cancel_asked || current.stopping) stop(gang, "its gang is ending");
    if (current.over.size() == state_.tasks.ranks_tried(gang).size())
      conclude(gang);
    else
      look_whether_all_run(gang);
    if (gang.state == TaskState::kRunning) state_.gangs.began(id, {}, state_.clock.boot_ns());
    if (gang.state == TaskState::kAssigned && tries_.contains(id)) watch_start(gang);
  }
}

void GangLife::place(Task& gang, const GangPlan& plan) {
  state_.tasks.advance(gang, TaskState::kAssigned);
  gang.attempt = state_.next_attempt(gang);
  gang.policy = plan.turn ? plan.turn->policy : GangPolicies::full_name(policies_.active());
  gang.reason.clear();
  auto& current = tries_[gang.id] = {.attempt = gang.attempt, .ranks = {}, .over = {}};
  current.checkpoint = newest_checkpoint(state_, gang.id);
  current.placed_ns = state_.clock.boot_ns();
  credits_.goes_on_from(gang, current.checkpoint);
  if (plan.turn) {
    credits_.placed(gang, *plan.turn, current.checkpoint);
    state_.scores.decided(gang.policy, plan.decide_ns);
  }
  auto changed = place_ranks(gang, plan, current);
  auto record = describe(gang, plan, policies_.oversight());
  if (!current.checkpoint.empty()) record.reason += ", from " + current.checkpoint;
  record.at_ms = state_.clock.wall_ms();
  changed.push_back(gang);
  std::map<std::string, uint64_t> used;
  for (const auto& use : gang.spec.datasets)
    used[use.dataset] = state_.catalog.find(use.dataset)->dataset.version;
  state_.store.write(
      [changed = std::make_shared<const std::vector<Task>>(std::move(changed)), record,
       used = std::move(used), parents = gang.parents](Db& db) -> Status {
        if (auto there = records::need_versions(db, used); !there) return there;
        if (auto ended = records::need_ends(db, parents); !ended) return ended;
        for (const auto& task : *changed)
          if (auto put = records::update_task(db, task); !put) return put;
        return records::put_decision(db, record);
      },
      [this, id = gang.id, attempt = gang.attempt](Status status) {
        committed(id, attempt, status);
      });
}

std::vector<Task> GangLife::place_ranks(const Task& gang, const GangPlan& plan, Try& current) {
  std::vector<Task> placed;
  const auto& ids = state_.tasks.ranks_of(gang.id);
  for (uint32_t i = 0; i < plan.ranks.size(); ++i) {
    auto& rank = *state_.tasks.find(ids[i]);
    const auto& [on, place] = plan.ranks[i];
    auto& node = *state_.registry.find(on);
    state_.tasks.advance(rank, TaskState::kAssigned);
    current.ranks.push_back({plan.ranks[i], rank.attempt});
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
    state_.registry.assign(node, {rank.id, rank.attempt}, rank.spec.units,
                           rank.spec.swap_room_bytes);
    node.count(rank, 0, 0);
    placed.push_back(rank);
  }
  return placed;
}

GangLife::Try* GangLife::current(uint64_t gang, uint32_t attempt) {
  const auto found = tries_.find(gang);
  return found == tries_.end() || found->second.attempt != attempt ? nullptr : &found->second;
}

void GangLife::committed(uint64_t id, uint32_t attempt, const Status& status) {
  auto* gang = state_.tasks.find(id);
  auto* now = current(id, attempt);
  if (!gang || !now || now->stopping) return;
  if (!status) return unassign(*gang, status.error().message);
  watch_start(*gang);
  send(*gang, *now, 0, 0);
}

// No node knows of the try: it was none, however often the disk fails.
void GangLife::unassign(Task& gang, const std::string& why) {
  const auto last = tries_.extract(gang.id);
  const std::vector<uint64_t> ids = state_.tasks.ranks_of(gang.id);
  for (size_t number = 0; number < last.mapped().ranks.size(); ++number) {
    auto& rank = *state_.tasks.find(ids[number]);
    for (const auto& unit : units_of_rank(rank)) state_.units.give_back(unit);
    lifecycle_.unassign_rank(rank, last.mapped().ranks[number].attempt_before);
  }
  credits_.ended(gang, Fate::kAgain);
  state_.gangs.stopped(gang.id);
  lifecycle_.unassign(gang, why);
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
  // A later one may have made it surplus meanwhile, and all ranks begin from the same.
  if (!now.checkpoint.empty() && !state_.catalog.find(now.checkpoint))
    return lifecycle_.take_back(rank.node, attempt, now.checkpoint + " has gone");
  auto assignment = make_assignment(state_, rank, rank.node, now.checkpoint);
  assignment.spec.name = gang.spec.name;
  assignment.user = gang.user;
  assignment.rank = RankAssignment{.gang = gang.id,
                                   .rank = number,
                                   .world_size = static_cast<uint32_t>(now.ranks.size()),
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
  // A rank whose node takes it no more may end the try.
  for (uint32_t number = 1; now && number < now->ranks.size() && !now->stopping; ++number) {
    if (!now->ranks[number].told) send(*gang, *now, number, *taken);
    now = current(id, attempt.attempt);
  }
}

void GangLife::watch_start(const Task& gang) {
  const int64_t within_ms =
      gang.spec.gang.start_within_ms > 0 ? gang.spec.gang.start_within_ms : kStartWithin_ms;
  after_(within_ms * 1000, [this, id = gang.id, attempt = gang.attempt, within_ms] {
    auto* late = state_.tasks.find(id);
    if (!late || !current(id, attempt) || late->state != TaskState::kAssigned) return;
    for (const uint64_t rank_id : state_.tasks.ranks_tried(*late))
      if (const auto& rank = *state_.tasks.find(rank_id); rank.state == TaskState::kAssigned)
        return stop(*late,
                    fmt::format("rank {} did not start on node '{}' within {} s", rank.rank->rank,
                                rank.node, static_cast<double>(within_ms) / 1e3));
  });
}

void GangLife::rank_started(Task& rank) {
  for (const auto& unit : units_of_rank(rank)) state_.units.take(unit, rank.rank->gang);
  look_whether_all_run(*state_.tasks.find(rank.rank->gang));
}

void GangLife::look_whether_all_run(Task& gang) {
  if (gang.state != TaskState::kAssigned) return;
  for (const uint64_t id : state_.tasks.ranks_tried(gang))
    if (state_.tasks.find(id)->state != TaskState::kRunning) return;
  lifecycle_.gang_started(gang);
  auto* now = current(gang.id, gang.attempt);
  if (!now) return;
  now->began_ns = state_.clock.boot_ns();
  state_.gangs.began(gang.id, now->checkpoint, now->began_ns);
}

void GangLife::reported(const Task& rank, const JobPoint& point) {
  if (!rank.rank || rank.rank->rank != 0) return;
  const uint64_t gang = rank.rank->gang;
  state_.gangs.told_iterations(gang, point.iterations);
  auto* now = current(gang, rank.attempt);
  if (!now || now->began_ns == 0 || now->has_worked || point.iteration == 0) return;
  now->has_worked = true;
  note_restart(*now, state_.clock.boot_ns());
}

// A first try is no restart.
void GangLife::note_restart(const Try& now, int64_t working_ns) {
  constexpr double kNsPerHour = 3.6e12;
  if (now.attempt > 1 && now.placed_ns > 0)
    state_.gangs.restarted(static_cast<double>(working_ns - now.placed_ns) / kNsPerHour);
}

void GangLife::rank_over(Task& rank, const Verdict& verdict) {
  for (const auto& unit : units_of_rank(rank)) state_.units.give_back(unit);
  auto& gang = *state_.tasks.find(rank.rank->gang);
  auto* now = current(gang.id, rank.attempt);
  if (!now || !now->over.emplace(rank.rank->rank, verdict).second) return;
  if (verdict.fate != Fate::kSucceeded && !now->stopping) {
    now->first_bad = rank.rank->rank;
    stop(gang, fmt::format("rank {} of its gang ended: {}", rank.rank->rank, verdict.reason));
  }
  now = current(gang.id, gang.attempt);  // stopping it may have ended it
  if (now && now->over.size() == state_.tasks.ranks_tried(gang).size()) conclude(gang);
}

void GangLife::begin_again(Task& gang, uint32_t ranks, const std::string& why) {
  auto* now = current(gang.id, gang.attempt);
  if (!now || now->stopping) return;
  now->counts = false;
  state_.gangs.want(gang.id, ranks, why);
  stop(gang, fmt::format("to begin again with {} ranks: {}", ranks, why));
}

void GangLife::stop(Task& gang, const std::string& why) {
  const uint32_t attempt = gang.attempt;
  auto* now = current(gang.id, attempt);
  if (!now) return;
  now->stopping = true;
  // What an earlier coordinator told them is not known.
  if (now->why_stopped.empty() && !now->ranks.empty()) now->why_stopped = why;
  if (gang.reason.empty()) gang.reason = why;
  const auto tried = state_.tasks.ranks_tried(gang);
  const std::vector<uint64_t> ids(tried.begin(), tried.end());
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

Verdict GangLife::judge_try(Task& gang, const Try& last) {
  if (gang.cancel_asked && last.stopping) return {Fate::kCancelled, "cancelled"};
  if (!last.stopping) return {Fate::kSucceeded, {}};
  if (!last.device_fault.empty()) return {Fate::kAgain, last.device_fault, false};
  // They came to their end before they were asked to.
  if (std::all_of(last.over.begin(), last.over.end(),
                  [](const auto& rank) { return rank.second.fate == Fate::kSucceeded; }))
    return {Fate::kSucceeded, {}};
  // It was only asked to end: a late start, say.
  Verdict verdict{Fate::kAgain, gang.reason, last.counts};
  bool elsewhere = false;
  if (const auto* cause = culprit(gang, last)) {
    verdict = last.over.at(cause->rank->rank);
    verdict.reason = fmt::format("rank {} on node '{}': {}", cause->rank->rank, cause->node,
                                 verdict.reason.empty() ? "ended" : verdict.reason);
    if (ended_by_its_node(*cause, last.why_stopped)) return {Fate::kAgain, verdict.reason, false};
    // Another try would have as much time again.
    if (cause->exit && cause->exit->how == TaskEnd::kTimedOut)
      return {Fate::kFailed, verdict.reason};
    elsewhere = blame_units(gang, *cause);
  }
  if (verdict.fate == Fate::kAgain) {
    const uint32_t tries = counted_tries(gang), most = state_.max_attempts(gang);
    if (verdict.node_lost && may_forgive(gang)) verdict.counts = false;
    if (!verdict.counts || tries < most) return verdict;
    const uint32_t of = state_.settings.max_attempts;  // without those above which a restore counts
    return {Fate::kFailed,
            fmt::format("{} (try {} of {})", verdict.reason, tries - (most - of), of)};
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
  // Of a job that tells nothing, that its processes run is all that is known.
  if (last.mapped().began_ns > 0 && !last.mapped().has_worked)
    note_restart(last.mapped(), last.mapped().began_ns);
  auto verdict = judge_try(gang, last.mapped());
  credits_.ended(gang, verdict.fate);
  state_.gangs.stopped(gang.id);
  if (verdict.fate != Fate::kAgain) blames_.erase(gang.id);
  // Of those that were cancelled while they waited nobody tells either.
  state_.gangs.keep_only([&](uint64_t id) {
    return state_.tasks.find(id) && (id != gang.id || verdict.fate == Fate::kAgain);
  });
  if (gang.state != TaskState::kRunning) gang.started_ms = 0;
  lifecycle_.finish(gang, std::move(verdict), nullptr);
}

}  // namespace tierpilot
