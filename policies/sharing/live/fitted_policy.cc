#include "policies/sharing/live/fitted_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "policies/sharing/live/beside_others.h"
#include "policies/sharing/live/closely.h"
#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/neighbours.h"
#include "policies/sharing/live/taking.h"

namespace tierpilot::sharing {
namespace {

// `aimed`, but what is only ahead of the promise is not taken from who uses next to nothing.
uint32_t but_for_idle(uint32_t aimed, uint32_t needed, uint32_t room, uint32_t idle) {
  return std::min({aimed, room, std::max(needed, room - std::min(room, idle))});
}

LiveJob as_live(const WaitingJob& job) {
  LiveJob live;
  live.id = job.id;
  live.sharer = job.sharer;
  return live;
}

// What those with promises have above their needs is lent to them, and goes back.
LiveUnit without_surplus(LiveUnit unit, const Sharer& newcomer, const Retained& retained,
                         double aim, std::vector<std::pair<uint64_t, uint32_t>>& left) {
  for (auto& job : unit.jobs) {
    if (job.job_class != JobClass::kLatencySensitive) continue;
    const double kept =
        Neighbours(retained, unit.jobs).kept(job, newcomer).lower_beside(upper_ratio(job));
    const uint32_t needed = needed_milli(job, kept, aim);
    if (needed >= job.share.milli) continue;
    job.share.milli = needed;
    left.emplace_back(job.id, needed);
  }
  return unit;
}

// What it is given, and at whose cost. `lent`: some have more than they need.
std::string reason_for(const WaitingJob& job, const Taken& from_best_effort, bool lent) {
  const bool in_place = from_best_effort.milli > 0 || !from_best_effort.preempted.empty();
  std::string reason = job.is_promised() ? "what keeps its promise" : "what it needs";
  if (lent) reason += ", of what others have beyond their needs";
  if (in_place) reason += fmt::format("{} in the place of best-effort jobs", lent ? " and" : ",");
  return reason;
}

double lost_by_ending(const LiveJob& job) {
  return job.takes_checkpoints ? job.unsaved_s : job.elapsed_s;
}

// Where it fits if all best-effort jobs went, those first where perhaps none has to, then where the
// least would be lost by the one that loses least.
std::vector<UnitAt> with_claims(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                double aim) {
  return looked_at_closely(
      nodes, [&](const LiveUnit& unit, size_t) -> std::optional<std::pair<bool, double>> {
        const auto* predicted = predicted_on(job, unit);
        if (!predicted) return std::nullopt;
        const uint32_t least = wish_for(job, *predicted, 1, aim).least;
        uint32_t held = 0, goes_on = 0;  // by promises; by best-effort jobs that are left a little
        double lost_s = 0;
        for (const auto& other : unit.jobs)
          if (other.job_class == JobClass::kLatencySensitive) {
            held += std::min(other.share.milli, needed_milli(other, 1, aim));
          } else {
            lost_s = goes_on == 0 ? lost_by_ending(other) : std::min(lost_s, lost_by_ending(other));
            goes_on += std::min(other.share.milli, kLeastMilli);
          }
        const uint32_t reserve = unit.hardly_used_milli();
        if (held + least > unit.whole.milli + reserve) return std::nullopt;
        return std::pair(held + least + goes_on > unit.whole.milli + reserve, lost_s);
      });
}

// From those that have more than they need for their promises, and from best-effort jobs.
std::optional<Start> in_their_place_on(const LiveUnit& unit, const WaitingJob& job,
                                       const Retained& retained, double aim) {
  if (unit.promise_waits && aim > kAim && !job.is_promised()) return std::nullopt;
  const auto& predicted = *predicted_on(job, unit);
  const auto needed = needed_for(job, predicted);
  std::vector<uint64_t> apart;  // who bears no more, or holds memory
  std::vector<std::pair<uint64_t, uint32_t>> lent;
  LiveUnit rest = without_surplus(unit, job.sharer, retained, aim, lent);
  while (const auto* other = Neighbours(retained, rest.jobs).in_the_way(as_live(job), needed)) {
    apart.push_back(other->id);
    std::erase_if(rest.jobs, [id = other->id](const LiveJob& each) { return each.id == id; });
  }
  const uint64_t bytes = job.memory_bytes_on(predicted);
  for (const uint64_t id : who_frees_memory(rest, bytes)) {
    apart.push_back(id);
    std::erase_if(rest.jobs, [&](const LiveJob& each) { return each.id == id; });
  }
  const double speed =
      Neighbours(retained, rest.jobs).kept(job.sharer, job.id).lower_beside(needed.upper);
  const uint32_t least = but_for_idle(wish_for(job, predicted, speed, aim).least,
                                      wish_for(job, predicted, speed, kPromiseMargin).least,
                                      rest.whole.milli, rest.hardly_used_milli());
  const auto free = rest.free();
  if (speed < needed.speed || free.memory_bytes < bytes) return std::nullopt;
  if (Neighbours(retained, rest.jobs).not_borne(job.sharer, needed)) return std::nullopt;
  // Others would be slowed too much.
  if (apart.empty() && lent.empty() && free.milli >= least) return std::nullopt;
  auto taken = take_from_best_effort(rest, least - std::min(least, free.milli), kLeastMilli);
  if (free.milli + taken.milli < least) return std::nullopt;
  taken.preempted.insert(taken.preempted.end(), apart.begin(), apart.end());
  taken.left.insert(taken.left.begin(), lent.begin(), lent.end());
  auto reason = reason_for(job, taken, !lent.empty());
  return Start{
      0, 0, {least, bytes}, std::move(taken.left), std::move(taken.preempted), std::move(reason)};
}

// Where that ends the fewest and loses the least.
std::optional<Start> in_their_place(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                    const Retained& retained, double aim) {
  std::optional<Start> best;
  auto best_cost = std::tuple(SIZE_MAX, 0.0);
  for (const auto& [n, u] : with_claims(nodes, job, aim)) {
    auto start = in_their_place_on(nodes[n][u], job, retained, aim);
    if (!start) continue;
    double lost_s = 0;
    for (const auto& running : nodes[n][u].jobs)
      if (std::count(start->preempted.begin(), start->preempted.end(), running.id) > 0)
        lost_s += lost_by_ending(running);
    const auto cost = std::tuple(start->preempted.size(), lost_s);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = std::move(start);
    best->node = n;
    best->unit = u;
    if (best->preempted.empty()) break;  // none is better
  }
  return best;
}

// To each of `jobs` what is left of it, up to its need, in proportion to what was asked for it; who
// needs little is served first.
void pour(std::vector<LiveJob*> jobs, uint32_t& room) {
  const auto missing = [](const LiveJob& job) {
    return uint64_t{job.usable_milli() - std::min(job.usable_milli(), job.share.milli)};
  };
  const auto weight = [](const LiveJob& job) { return uint64_t{std::max(1U, job.own_milli)}; };
  uint64_t weights = 0;
  for (const auto* job : jobs) weights += weight(*job);
  std::stable_sort(jobs.begin(), jobs.end(), [&](const auto* a, const auto* b) {
    return missing(*a) * weight(*b) < missing(*b) * weight(*a);
  });
  for (auto* job : jobs) {
    const uint64_t part = room * weight(*job) / weights;
    const auto given = static_cast<uint32_t>(std::min(missing(*job), part));
    job->share.milli += given;
    room -= given;
    weights -= weight(*job);
  }
}

// No share makes up for a neighbour that takes too much of a job's speed.
LiveUnit without_who_breaks_promises(LiveUnit unit, const Retained& retained, KeptApart& apart,
                                     std::vector<Preempted>& preempted) {
  for (size_t i = 0; i < unit.jobs.size();) {
    const Neighbours neighbours(retained, unit.jobs);
    const auto& job = unit.jobs[i];
    const double needed = needed_speed(job.left_upper_s, job.promise_left_s);
    const auto* worst = neighbours.slowest_neighbour(job, &Kept::part);
    if (!worst || neighbours.kept(job).part() >= needed) {
      ++i;
      continue;
    }
    apart.ended(*worst, job);
    preempted.push_back({worst->id, "it slows a job on its unit that could not keep its promise"});
    std::erase_if(unit.jobs, [id = worst->id](const LiveJob& each) { return each.id == id; });
    i = 0;
  }
  return unit;
}

// With all that each can use, the others lose as much of their speeds as it has; which was
// measured, of one pair at least.
bool adds_nothing(const LiveJob& job, const std::vector<LiveJob>& together,
                  const Retained& retained) {
  std::vector<LiveJob> others;
  bool measured = false;
  for (auto other : together) {
    if (other.id == job.id) continue;
    measured = measured || retained(job.sharer, other.sharer).measured > 0 ||
               retained(other.sharer, job.sharer).measured > 0;
    other.share.milli = other.usable_milli();
    others.push_back(std::move(other));
  }
  return measured && Neighbours(retained, others).gain(job.sharer, 1) <= 0;
}

// Best-effort jobs that turn out to do no more together than one after the other go apart: whoever
// has the newest checkpoint goes first.
void part_who_add_nothing(const LiveUnit& unit, const Retained& retained,
                          std::vector<Preempted>& preempted) {
  if (!retained) return;
  std::vector<LiveJob> together;
  for (const auto& job : unit.jobs)
    if (job.job_class == JobClass::kBestEffort) together.push_back(job);
  while (together.size() > 1) {
    auto least = together.end();
    for (auto job = together.begin(); job != together.end(); ++job)
      if (job->takes_checkpoints && adds_nothing(*job, together, retained) &&
          (least == together.end() || job->unsaved_s < least->unsaved_s))
        least = job;
    if (least == together.end()) return;
    preempted.push_back(
        {least->id, "with it the jobs on its unit do no more than one after the other"});
    together.erase(least);
  }
}

// Those that end already are not asked again, and are not counted with who is judged.
std::vector<Preempted> who_has_to_go(const LiveUnit& whole, const Retained& retained,
                                     KeptApart& apart) {
  std::vector<Preempted> preempted;
  LiveUnit staying = whole;
  std::erase_if(staying.jobs, [](const LiveJob& job) { return job.leaves; });
  staying = without_who_breaks_promises(std::move(staying), retained, apart, preempted);
  part_who_add_nothing(staying, retained, preempted);
  return preempted;
}

// What each job of a unit has at least, by its id.
using Least = std::map<uint64_t, uint32_t>;

// What cannot be kept any more, is only on trial or was not asked for takes nothing from a promise
// that was made.
int rank(const LiveJob* job) {
  if (!job->is_promised()) return 3;
  if (job->left_s >= job->promise_left_s) return 2;
  return job->on_trial ? 1 : 0;
}

// What each has in any case: its least, and what keeps a promise that was made, the first ones
// first.
Least kept_for_each(const std::vector<LiveJob*>& sensitive, const LiveUnit& unit, Least least,
                    const Retained& retained) {
  uint32_t sum = 0;
  for (const auto* job : sensitive) sum += least.at(job->id);
  for (const auto* job : sensitive) {
    if (rank(job) != 0) continue;
    auto& milli = least.at(job->id);
    const double kept = Neighbours(retained, unit.jobs).kept(*job).lower_beside(upper_ratio(*job));
    const uint32_t more = std::max(needed_milli(*job, kept, kPromiseMargin), milli) - milli;
    const uint32_t taken = std::min(more, unit.whole.milli - std::min(unit.whole.milli, sum));
    milli += taken;
    sum += taken;
  }
  return least;
}

// Gives each what its promise needs to be ahead, as far as there is room beside what others have in
// any case, and gives the sum.
uint32_t serve(const std::vector<LiveJob*>& sensitive, const LiveUnit& unit, const Least& least,
               const Retained& retained, double aim) {
  const auto sure = kept_for_each(sensitive, unit, least, retained);
  uint32_t given = 0, later = 0;
  for (const auto* job : sensitive) later += sure.at(job->id);
  for (auto* job : sensitive) {
    later -= sure.at(job->id);
    const uint32_t room = unit.whole.milli - std::min(unit.whole.milli, given + later);
    const double kept = Neighbours(retained, unit.jobs).kept(*job).lower_beside(upper_ratio(*job));
    job->share.milli =
        but_for_idle(needed_milli(*job, kept, aim), needed_milli(*job, kept, kPromiseMargin), room,
                     unit.hardly_used_milli());
    job->share.milli = std::max(job->share.milli, std::min(room, least.at(job->id)));
    given += job->share.milli;
  }
  return given;
}

// From what each has to what each is to have: who shrinks first. What is hardly another share is
// none, unless those that grow need it.
std::vector<std::pair<uint64_t, uint32_t>> orders(const LiveUnit& from, const LiveUnit& to) {
  constexpr uint32_t kNotWorthIt = 20;
  std::vector<std::pair<uint64_t, uint32_t>> shrunk, small, grown;
  uint32_t sum = 0;
  for (size_t i = 0; i < to.jobs.size(); ++i) {
    const uint32_t was = from.jobs[i].share.milli, is = to.jobs[i].share.milli;
    if (is == 0) continue;  // it ends
    const bool worth_it = std::max(was, is) - std::min(was, is) >= kNotWorthIt;
    sum += worth_it ? is : was;
    if (is < was)
      (worth_it ? shrunk : small).emplace_back(to.jobs[i].id, is);
    else if (worth_it)
      grown.emplace_back(to.jobs[i].id, is);
  }
  if (sum > from.whole.milli) shrunk.insert(shrunk.end(), small.begin(), small.end());
  shrunk.insert(shrunk.end(), grown.begin(), grown.end());
  return shrunk;
}

}  // namespace

std::optional<Start> FittedPolicy::place(const std::vector<LiveNode>& nodes,
                                         const WaitingJob& job) {
  if (auto start = beside_others(nodes, job, retained_, apart_)) return start;
  if (job.job_class != JobClass::kLatencySensitive)
    return of_what_is_lent(nodes, job, retained_, apart_);
  // Sooner with less ahead of its promise than later.
  for (const double aim : {kAim, kTightAim, kPromiseMargin})
    if (auto start = in_their_place(nodes, job, retained_, aim)) return start;
  return std::nullopt;
}

std::string FittedPolicy::refusal(const LiveUnit& unit, const WaitingJob& job) const {
  if (const auto slowed = apart_.on(unit, job); slowed && predicted_on(job, unit))
    return fmt::format("one like it slowed task {} more than its promise bears", *slowed);
  return refused_beside_others(unit, job, retained_);
}

Adjustment FittedPolicy::adjust(const LiveUnit& whole) {
  Adjustment adjustment;
  adjustment.preempted = who_has_to_go(whole, retained_, apart_);
  LiveUnit unit = whole;
  std::erase_if(unit.jobs, [&](const LiveJob& job) { return adjustment.preempts(job.id); });
  LiveUnit now = unit;
  std::vector<LiveJob*> sensitive, best_effort;
  uint32_t goes_on = 0;  // with which all best-effort jobs go on
  // What each has at least. Who was started with less goes on with that: ended, it would be started
  // again and end again.
  Least least;
  const auto held = [&](const LiveJob* job) { return least.at(job->id); };
  for (auto& job : now.jobs) {
    const bool first = job.job_class == JobClass::kLatencySensitive;
    (first ? sensitive : best_effort).push_back(&job);
    least[job.id] = std::min({job.need_milli, kLeastMilli, std::max(1U, job.share.milli)});
    if (!first) goes_on += held(&job);
    job.share.milli = 0;
  }
  std::stable_sort(sensitive.begin(), sensitive.end(),
                   [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  uint32_t room = unit.whole.milli - serve(sensitive, unit, least, retained_, kAim);
  if (room < goes_on && !unit.promise_waits)
    room = unit.whole.milli - serve(sensitive, unit, least, retained_, kTightAim);
  // Each of the others goes on with a little, or ends: who loses least ends first.
  std::stable_sort(best_effort.begin(), best_effort.end(), [](const auto* a, const auto* b) {
    return lost_by_ending(*a) > lost_by_ending(*b);
  });
  std::vector<LiveJob*> going_on;
  for (auto* job : best_effort) {
    if (room < held(job)) {
      adjustment.preempted.push_back(
          {job->id, "what is left of its unit is too little to go on with"});
      continue;
    }
    job->share.milli = held(job);
    room -= job->share.milli;
    going_on.push_back(job);
  }
  pour(going_on, room);
  pour(sensitive, room);
  adjustment.milli = orders(unit, now);
  return adjustment;
}

}  // namespace tierpilot::sharing
