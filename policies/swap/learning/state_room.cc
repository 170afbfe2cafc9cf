#include "policies/swap/learning/state_room.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {
namespace {

constexpr int kSteps = 2;        // to judge by: one may be disturbed, or of another kind
constexpr int kManySteps = 64;   // where it was wrong before
constexpr double kNoise = 1.01;  // of a step's time
constexpr int64_t kParts[] = {1, 2, 4, 8};
constexpr int64_t kFew = 16;  // a part of the states that makes no difference

}  // namespace

bool StateRoom::decide(Phase phase, int64_t bytes) {
  phase_ = phase;
  steps_ = 0;
  if (bytes_ == bytes) return false;
  fit_ = in_vain_ = over_ = 0;
  bytes_ = bytes;
  return true;
}

// They all had to be there at once to be updated, and that took no less than it would beside them
// all before.
bool StateRoom::leave_in_vain(const StepWithStates& step) {
  if (!step.updated || step.passes_peak_bytes == 0) return false;
  const auto leaving_bytes = step.state_bytes - step.staying_bytes;
  const bool in_vain =
      step.least_away_bytes <= leaving_bytes / kFew &&
      step.passes_peak_bytes + leaving_bytes <= std::max(step.peak_bytes, step.target_bytes);
  in_vain_ = in_vain ? in_vain_ + 1 : 0;
  return in_vain_ >= kSteps;
}

bool StateRoom::all_fit(const StepWithStates& step) {
  const auto leaving_bytes = step.state_bytes - step.staying_bytes;
  const bool fit = leaving_bytes > 0 && step.peak_bytes + leaving_bytes <= step.target_bytes;
  fit_ = fit ? fit_ + step.updated : 0;
  return fit_ >= (crowded_ ? kManySteps : kSteps);
}

bool StateRoom::does_not_fit() {
  fit_ = 0;
  if (bytes_ == 0) return false;
  if (std::exchange(restored_, false)) return decide(Phase::kWithout, 0);
  // Where they left in vain a single step may have been disturbed.
  if (in_vain_peak_bytes_ > 0 && ++over_ < kSteps) return false;
  crowded_ = true;
  return decide(Phase::kDecided, 0);
}

bool StateRoom::step_ended(const StepWithStates& step, const Foretell& foretell) {
  if (bytes_ == 0 && !crowded_ && leave_in_vain(step)) {
    in_vain_peak_bytes_ = step.peak_bytes + step.peak_bytes / kFew;
    return decide(Phase::kDecided, kAll);
  }
  if (!step.fits && step.peak_bytes > in_vain_peak_bytes_) return does_not_fit();
  over_ = 0;
  if (!step.settled) return false;
  if (all_fit(step)) return decide(Phase::kDecided, kAll);
  if (phase_ == Phase::kDecided || step.cost_ns <= 0 || !step.updated) return false;
  least_ns_ = steps_ == 0 ? step.cost_ns : std::min(least_ns_, step.cost_ns);
  least_wait_ns_ = steps_ == 0 ? step.wait_ns : std::min(least_wait_ns_, step.wait_ns);
  if (++steps_ < kSteps) return false;
  return phase_ == Phase::kWithout ? weigh(step, foretell) : end_trial(step);
}

bool StateRoom::end_trial(const StepWithStates& step) {
  if (static_cast<double>(least_ns_) > kNoise * static_cast<double>(without_ns_))
    return decide(Phase::kDecided, 0);
  decide(Phase::kDecided, step.staying_bytes == step.state_bytes ? kAll : bytes_);
  return false;  // plans are of this already
}

// By the replay: waits for states that are gone, against what other tensors wait for their room.
bool StateRoom::weigh(const StepWithStates& step, const Foretell& foretell) {
  without_ns_ = least_ns_;
  const auto now_ns = foretell(0);
  int64_t best = 0;
  double most_ns = 0;
  for (const auto part : kParts) {
    const auto bytes = step.state_bytes / part;
    const auto then_ns = now_ns && bytes > 0 ? foretell(bytes) : std::nullopt;
    if (!then_ns) continue;
    const auto waits_ns = static_cast<double>(least_wait_ns_ / part);
    const auto gain_ns = waits_ns - (*then_ns - *now_ns);
    if (gain_ns > most_ns) most_ns = gain_ns, best = bytes;
  }
  return decide(best > 0 ? Phase::kTried : Phase::kDecided, best);
}

}  // namespace tierpilot::swap
