#include "policies/sharing/live/claims.h"

#include <algorithm>
#include <cmath>

#include "policies/sharing/live/beside_others.h"
#include "policies/sharing/live/taking.h"

namespace tierpilot::sharing {
namespace {

constexpr double kNever = kNoPromise;

// Promises are kept ahead of their time, by as much as shares are given for while others wait; of
// others by what is left of them, which may not be known.
double end_of(const LiveJob& job) {
  if (!job.is_promised() || job.promise_left_s <= 0)
    return job.left_upper_s > 0 ? job.left_upper_s : kNever;
  if (job.left_upper_s <= 0) return job.promise_left_s;
  const double end_s = std::max(aimed_s(job, kAim), job.left_upper_s / kLeastKept);
  return std::min(job.promise_left_s, end_s);
}

// What is left of a run, both parts in seconds of a full speed.
struct RunLeft {
  double start_s = 0, rest_s = 0;
};

// So much of it is done in `for_s`; gives how long that takes, if less.
double pass(double& left_s, double speed, double for_s) {
  if (left_s <= 0) return 0;
  const double takes_s = speed > 0 ? std::min(for_s, left_s / speed) : for_s;
  left_s = takes_s < for_s ? 0 : std::max(0.0, left_s - takes_s * speed);
  return takes_s;
}

// That a delay of at most so much adds to a run that may last so much longer than is most likely:
// both are not far off at once.
double unforeseen_s(double longer_s, double delay_s) {
  return delay_s > 0 && std::isfinite(longer_s) ? std::hypot(longer_s, delay_s) - longer_s : 0;
}

}  // namespace

// Of its run from the first of them on, as more of the unit becomes free.
double Claims::time_from(std::span<const Stretch> stretches, const Predicted& predicted) {
  if (predicted.run_upper_s <= 0) return kNever;
  RunLeft left{predicted.start_s, std::max(0.0, predicted.run_upper_s - predicted.start_s)};
  double time_s = 0;
  for (size_t i = 0; i < stretches.size() && (left.start_s > 0 || left.rest_s > 0); ++i) {
    const auto& now = stretches[i];
    if (now.begin_s == kNever) return kNever;
    double lasts_s = i + 1 < stretches.size() ? stretches[i + 1].begin_s - now.begin_s : kNever;
    const double speed = now.kept * kPromiseMargin;
    const double starts_s = pass(left.start_s, speed * speed_with(now.room, kWholeUnit), lasts_s);
    lasts_s -= starts_s;
    time_s += starts_s;
    if (left.start_s <= 0)
      time_s += pass(left.rest_s, speed * speed_with(now.room, predicted.milli), lasts_s);
  }
  return time_s;
}

Kept Claims::Loss::kept() const {
  return {ln, std::max(0.0, variance), KeptBy::kPrior, 0};
}

Claims::Loss Claims::loss(const Kept& kept) {
  return {std::min(0.0, kept.ln), kept.variance};
}

Claims::Loss Claims::beside(const Sharer& victim, const Sharer& neighbour) const {
  return *retained_ ? loss(kept_beside(*retained_, victim, neighbour)) : Loss{};
}

Claims::Claims(size_t node, const LiveUnit& unit, const Retained& retained)
    : node_(node), unit_(&unit), retained_(&retained) {
  for (const auto& running : unit.jobs)
    if (running.job_class == JobClass::kLatencySensitive) insert(running, 0);
}

void Claims::insert(LiveJob job, double begin_s) {
  const double job_end_s = begin_s + end_of(job);
  const auto at =
      std::upper_bound(claims_.begin(), claims_.end(), job_end_s,
                       [](double end_s, const Claim& claim) { return end_s < claim.end_s; });
  const auto index = static_cast<size_t>(at - claims_.begin());
  Claim made{std::move(job), job_end_s, {}};
  for (auto& other : claims_) {
    made.beside.push_back(beside(made.job.sharer, other.job.sharer));
    other.beside.insert(other.beside.begin() + static_cast<ptrdiff_t>(index),
                        beside(other.job.sharer, made.job.sharer));
  }
  made.beside.insert(made.beside.begin() + static_cast<ptrdiff_t>(index), Loss{});
  claims_.insert(at, std::move(made));
}

bool Claims::may_run(const WaitingJob& job, const Predicted& predicted) const {
  return job.only_node.value_or(node_) == node_ &&
         job.memory_bytes_on(predicted) <= unit_->whole.memory_bytes;
}

Claims::Together Claims::together(const Sharer& newcomer) const {
  Together all;
  for (const auto& claim : claims_) {
    Loss sum = beside(claim.job.sharer, newcomer);
    for (const auto& each : claim.beside) {
      sum.ln += each.ln;
      sum.variance += each.variance;
    }
    all.of_claims.push_back(sum);
    const auto own = beside(newcomer, claim.job.sharer);
    all.of_newcomer.ln += own.ln;
    all.of_newcomer.variance += own.variance;
  }
  return all;
}

bool Claims::bear(const Together& together, size_t first) const {
  if (!*retained_) return true;
  if (!is_enough(together.of_newcomer.kept(), {})) return false;
  for (size_t i = first; i < claims_.size(); ++i)
    if (!is_enough(together.of_claims[i].kept(), needed_by(claims_[i].job))) return false;
  return true;
}

bool Claims::have_memory(size_t first, uint64_t bytes) const {
  for (size_t i = first; i < claims_.size(); ++i) bytes += claims_[i].job.share.memory_bytes;
  return bytes <= unit_->whole.memory_bytes;
}

// What they leave, each with what its promise needs.
uint32_t Claims::room(const Together& together, size_t first, double aim) const {
  uint32_t taken = 0;
  for (size_t i = first; i < claims_.size(); ++i) {
    const auto& job = claims_[i].job;
    taken += needed_milli(job, together.of_claims[i].kept().lower_beside(upper_ratio(job)), aim);
  }
  const uint32_t whole = unit_->whole.milli;
  return whole - std::min(whole, taken);
}

double Claims::wait_s(const WaitingJob& job, const Predicted& predicted, uint32_t room) const {
  double longest_s = 0;
  uint32_t go_on = 0;
  for (const auto& other : unit_->jobs)
    if (other.job_class == JobClass::kBestEffort) {
      longest_s = std::max(longest_s, other.ends_in_s);
      go_on += std::min(other.share.milli, kLeastMilli);
    }
  if (longest_s == 0) return 0;
  const auto needed = needed_for(job, predicted);
  const uint32_t milli = needed_milli({predicted.milli, predicted.run_upper_s, predicted.start_s},
                                      job.promise_left_s, 1);
  const bool all_go_on = room + unit_->hardly_used_milli() >= milli + go_on &&
                         unit_->free().memory_bytes >= job.memory_bytes_on(predicted) &&
                         !Neighbours(*retained_, unit_->jobs).not_borne(job.sharer, needed);
  return all_go_on ? 0 : longest_s;
}

std::vector<Claims::Stretch> Claims::stretches(const WaitingJob& job,
                                               const Predicted& predicted) const {
  std::vector<Stretch> all;
  auto those = together(job.sharer);
  const uint64_t bytes = job.memory_bytes_on(predicted);
  for (size_t ended = 0; ended <= claims_.size(); ++ended) {
    if (ended > 0) without(ended - 1, job.sharer, those);
    Stretch stretch;
    stretch.begin_s = ended == 0 ? 0 : claims_[ended - 1].end_s;
    stretch.room = room(those, ended, kAim);
    stretch.most_room = room(those, ended, kPromiseMargin);
    stretch.kept = those.of_newcomer.kept().lower_beside(upper_ratio(predicted));
    stretch.may_begin = stretch.room > 0 && have_memory(ended, bytes) && bear(those, ended);
    all.push_back(stretch);
  }
  return all;
}

// One is not there any more.
void Claims::without(size_t ended, const Sharer& newcomer, Together& those) const {
  const auto own = beside(newcomer, claims_[ended].job.sharer);
  those.of_newcomer.ln -= own.ln;
  those.of_newcomer.variance -= own.variance;
  for (size_t i = ended + 1; i < claims_.size(); ++i) {
    those.of_claims[i].ln -= claims_[i].beside[ended].ln;
    those.of_claims[i].variance -= claims_[i].beside[ended].variance;
  }
}

Plan Claims::plan(const WaitingJob& job, const Predicted& predicted) const {
  Plan soonest;
  const auto all = stretches(job, predicted);
  for (size_t first = 0; first < all.size(); ++first) {
    const auto& begin = all[first];
    double at_s = begin.begin_s;
    if (at_s >= soonest.end_s) break;  // nothing that begins later ends sooner
    if (!begin.may_begin) continue;
    const double takes_s = time_from(std::span(all).subspan(first), predicted);
    const double longer_s = takes_s * (1 - 1 / upper_ratio(predicted));
    at_s += unforeseen_s(longer_s, wait_s(job, predicted, begin.room) - at_s);
    const double end_s = at_s + takes_s;
    if (end_s <= job.promise_left_s) {
      const WorkLeft work{predicted.milli, predicted.run_upper_s, predicted.start_s};
      const double within_s = job.promise_left_s - at_s;
      // It starts only where a share and neighbours that stay as they are would do, and waits else.
      if (needed_milli(work, within_s, begin.kept, kPromiseMargin) > begin.most_room) continue;
      if (needed_speed(predicted.run_upper_s, within_s) > begin.kept) continue;
      return {at_s, end_s, needed_milli(work, within_s, begin.kept)};
    }
    if (end_s < soonest.end_s) soonest = {at_s, end_s, std::min(begin.room, predicted.milli)};
  }
  return soonest;
}

void Claims::add(const Plan& plan, const WaitingJob& job, const Predicted& predicted) {
  LiveJob placed;
  placed.id = job.id;
  placed.job_class = job.job_class;
  placed.sharer = job.sharer;
  placed.share = {plan.milli, job.memory_bytes_on(predicted)};
  if (job.is_promised()) {
    placed.need_milli = predicted.milli;
    placed.left_s = predicted.run_s;
    placed.left_upper_s = predicted.run_upper_s;
    placed.start_left_s = predicted.start_s;
    placed.promise_left_s = job.promise_left_s - plan.start_s;
    return insert(std::move(placed), plan.start_s);
  }
  // It goes on with what there was, for so long.
  placed.need_milli = plan.milli;
  placed.left_upper_s = plan.end_s - plan.start_s;
  insert(std::move(placed), plan.start_s);
}

}  // namespace tierpilot::sharing
