#include "daemon/agent/gpus/gpu_turns.h"

#include <algorithm>
#include <utility>

namespace tierpilot::agent {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr uint32_t kWhole = 1000;
constexpr int64_t kShortestTurn_ns = 10 * kMs;
// The signal goes through two processes.
constexpr int64_t kShortestDrain_ns = 2 * kMs;
constexpr int64_t kLongestStop_ns = 200 * kMs;
constexpr int64_t kLongestDrain_ns = 250 * kMs;
// That long drains, which make longer turns, may lead to.
constexpr int64_t kLongestCycle_ns = 2'000 * kMs;
// How much of what was missed is made up for, and owed at most: bounds how long one waits, and what
// a pause of the machine does.
constexpr int64_t kMostSaved_ns = 1'000 * kMs;
constexpr int64_t kMostOwed_ns = 2'000 * kMs;
// The driver's samples come so late, and at most so late, in one piece.
constexpr int64_t kSampleLateness_ns = 100 * kMs;
constexpr int64_t kMostLateness_ns = 1'000 * kMs;
// What they tell is this exact: thousandths.
constexpr int64_t kSampleError_milli = 30;
// Of the loop that finds the drain: slow beside the samples' lateness.
constexpr int64_t kSmoothing = 4;
constexpr int64_t kGain = 4;

}  // namespace

int64_t GpuTurns::of_share(const Member& member, int64_t time_ns) {
  return time_ns / kWhole * member.milli + time_ns % kWhole * member.milli / kWhole;
}

int64_t GpuTurns::quantum_ns(const Member& member) {
  return std::max({of_share(member, kCycle_ns), kShortestTurn_ns, 2 * member.drain_ns});
}

void GpuTurns::bound(Member& member) {
  member.credit_ns = std::clamp(member.credit_ns, -of_share(member, kMostOwed_ns),
                                quantum_ns(member) + of_share(member, kMostSaved_ns));
}

void GpuTurns::set(AttemptId attempt, uint32_t milli) {
  members_[attempt].asked_milli = std::clamp(milli, 1u, kWhole);
  fit();
}

// A whole share has what the others leave of it.
void GpuTurns::fit() {
  uint32_t asked_milli = 0;
  for (const auto& [attempt, member] : members_) asked_milli += member.asked_milli;
  for (auto& [attempt, member] : members_) {
    const uint32_t others_milli = std::min(kWhole, asked_milli - member.asked_milli);
    const uint32_t part_milli = kWhole / static_cast<uint32_t>(members_.size());
    const uint32_t left_milli = std::max({kWhole - others_milli, part_milli, 1u});
    set_fit(member, member.asked_milli == kWhole ? left_milli : member.asked_milli);
  }
}

void GpuTurns::set_fit(Member& member, uint32_t milli) {
  if (member.milli == milli) return;
  const bool is_new = std::exchange(member.milli, milli) == 0;
  member.drain_ns = std::max(member.drain_ns, kShortestDrain_ns);
  if (is_new) member.credit_ns = quantum_ns(member);
  bound(member);
  // Samples of what it used before are still to come.
  member.over_ns = -of_share(member, kSampleLateness_ns);
}

void GpuTurns::remove(AttemptId attempt) {
  if (turn_ && turn_->attempt == attempt) turn_.reset();
  members_.erase(attempt);
  fit();
}

std::optional<AttemptId> GpuTurns::runs() const {
  if (!turn_ || turn_->drains) return std::nullopt;
  return turn_->attempt;
}

std::optional<AttemptId> GpuTurns::leaves(int64_t now_ns) const {
  if (!turn_ || !turn_->drains || now_ns < turn_->end_ns) return std::nullopt;
  return turn_->attempt;
}

void GpuTurns::runs_on(int64_t now_ns) {
  if (!turn_ || !turn_->drains || now_ns - turn_->stopped_ns > kLongestStop_ns) return;
  turn_->end_ns = std::max(turn_->end_ns, now_ns + members_.at(turn_->attempt).drain_ns);
}

void GpuTurns::advance(int64_t now_ns) {
  const int64_t before_ns = std::exchange(now_ns_, now_ns);
  if (turn_) {  // that the signals need time, and the next one begins late, is not its fault
    const int64_t until_ns =
        turn_->drains ? std::min(now_ns, turn_->end_ns - kShortestDrain_ns) : now_ns;
    auto& member = members_.at(turn_->attempt);
    const int64_t had_ns = std::max<int64_t>(0, until_ns - before_ns);
    member.credit_ns -= had_ns;
    member.charged_ns += had_ns;
  }
  for (auto& [attempt, member] : members_) {
    member.credit_ns += of_share(member, before_ns == 0 ? 0 : now_ns - before_ns);
    bound(member);
  }
  if (turn_) end_turn();
  if (!turn_) begin_turn();
}

// Or its next part. A timer that fired late made the turn longer, and did not make the drain
// shorter.
void GpuTurns::end_turn() {
  const auto& member = members_.at(turn_->attempt);
  if (member.milli == kWhole) {
    turn_->drains = false;
    turn_->stop_ns = now_ns_;  // should it get less
    next_ns_ = kNever_ns;
    return;
  }
  if (!turn_->drains && now_ns_ >= turn_->stop_ns) {
    turn_->drains = true;
    turn_->stopped_ns = now_ns_;
    turn_->end_ns = now_ns_ + member.drain_ns;
  }
  if (turn_->drains && now_ns_ >= turn_->end_ns) return turn_.reset();
  next_ns_ = turn_->drains ? turn_->end_ns : turn_->stop_ns;
}

// Of those that have earned a turn who has waited longest for it.
void GpuTurns::begin_turn() {
  next_ns_ = kNever_ns;
  const auto waits_ns = [](const Member& member) {
    return (member.credit_ns - quantum_ns(member)) / member.milli * kWhole;
  };
  auto next = members_.end();
  for (auto one = members_.begin(); one != members_.end(); ++one) {
    auto& member = one->second;
    if (member.milli == kWhole) {
      next = one;
      break;
    }
    const int64_t wait_ns = waits_ns(member);
    if (wait_ns < 0)
      next_ns_ = std::min(next_ns_, now_ns_ - wait_ns);
    else if (next == members_.end() || wait_ns > waits_ns(next->second))
      next = one;
  }
  if (next == members_.end()) return;
  const auto& [attempt, member] = *next;
  // Longer where much was saved: what passes between turns is too much then.
  const int64_t long_ns = quantum_ns(member) + (member.credit_ns - quantum_ns(member)) / 4;
  next_ns_ = now_ns_ + long_ns - (member.drain_ns - kShortestDrain_ns);
  turn_ = Turn{.attempt = attempt, .stop_ns = next_ns_};
}

void GpuTurns::others_used(AttemptId attempt, int64_t others_ns) {
  const auto found = members_.find(attempt);
  if (found == members_.end()) return;
  auto& member = found->second;
  const int64_t lost_ns =
      std::clamp<int64_t>(others_ns, 0, std::max<int64_t>(0, member.charged_ns));
  member.charged_ns -= lost_ns;
  member.credit_ns += lost_ns;
  bound(member);
}

void GpuTurns::used(AttemptId attempt, int64_t used_ns) {
  const auto found = members_.find(attempt);
  if (found == members_.end()) return;
  auto& member = found->second;
  const int64_t turns_ns = std::exchange(member.charged_ns, 0);
  const int64_t error_ns = used_ns - turns_ns / kWhole * (kWhole + kSampleError_milli);
  // So that kernels come to their end within the turn, and no time is left over for it.
  member.error_ns += (error_ns - member.error_ns) / kSmoothing;
  const int64_t longest_ns = std::min(kLongestDrain_ns, of_share(member, kLongestCycle_ns / 2));
  member.drain_ns = std::clamp(member.drain_ns + member.error_ns / kGain, kShortestDrain_ns,
                               std::max(kShortestDrain_ns, longest_ns));
  // Who computes on the host for a while does not save up.
  member.over_ns = std::max(member.over_ns + error_ns, -of_share(member, kMostLateness_ns));
  if (member.over_ns > 0) pay(member, std::exchange(member.over_ns, 0));
}

void GpuTurns::unmeasured() {
  for (auto& [attempt, member] : members_) member.charged_ns = member.error_ns = 0;
}

// To the others, in whose turns its kernels ran.
void GpuTurns::pay(Member& debtor, int64_t over_ns) {
  debtor.credit_ns -= over_ns;
  int64_t others_milli = 0;
  for (const auto& [attempt, member] : members_)
    if (&member != &debtor) others_milli += member.milli;
  for (auto& [attempt, member] : members_) {
    if (&member != &debtor) member.credit_ns += over_ns / others_milli * member.milli;
    bound(member);
  }
}

}  // namespace tierpilot::agent
