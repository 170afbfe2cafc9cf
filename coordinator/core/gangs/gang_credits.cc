#include "coordinator/core/gangs/gang_credits.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/gangs/gang_policies.h"
#include "policies/gang/placement/goodput.h"

namespace tierpilot {
namespace {

constexpr double kHour_ns = 3.6e12;
constexpr double kMsPerHour = 3.6e6;

}  // namespace

void GangCredits::goes_on_from(const Task& gang, const std::string& checkpoint) {
  const auto last = tries_.find(gang.id);
  if (last == tries_.end() || last->second.held_h < 0) return;
  const double kept_h = state_.gangs.run_h(gang.id, checkpoint) -
                        state_.gangs.run_h(gang.id, last->second.checkpoint);
  measure(gang, last->second, kept_h, state_.gangs.share_done(gang.id, checkpoint));
  tries_.erase(last);
}

void GangCredits::placed(const Task& gang, Oversight::Turn turn, const std::string& checkpoint) {
  tries_[gang.id] = {std::move(turn), checkpoint, state_.clock.boot_ns(),
                     state_.gangs.stalled_h(gang.id)};
}

void GangCredits::ended(const Task& gang, Fate fate) {
  // Of those that were cancelled while they waited nobody tells.
  std::erase_if(tries_, [&](const auto& each) { return !state_.tasks.find(each.first); });
  const auto last = tries_.find(gang.id);
  if (last == tries_.end()) return;
  const int64_t now_ns = state_.clock.boot_ns();
  last->second.held_h = static_cast<double>(now_ns - last->second.placed_ns) / kHour_ns;
  if (fate == Fate::kAgain) return;
  if (fate == Fate::kSucceeded) {
    const bool told = state_.gangs.share_done(gang.id, {}) >= 0;
    measure(gang, last->second, state_.gangs.run_h_since_begin(gang.id, now_ns), told ? 1 : -1);
  } else if (fate == Fate::kFailed) {
    measure(gang, last->second, 0, -1);
  }
  tries_.erase(last);
}

void GangCredits::measure(const Task& gang, const Try& last, double kept_h, double share) {
  gang::TryUse use{.held_h = last.held_h, .kept_h = std::max(kept_h, 0.0)};
  use.stalled_h = std::min(state_.gangs.stalled_h(gang.id) - last.stalled_before_h, use.kept_h);
  if (share >= 0 && gang.spec.gang.estimate_ms > 0) {
    const double began_at = state_.gangs.share_done(gang.id, last.checkpoint);
    use.estimated_h = std::max(share - began_at, 0.0) *
                      static_cast<double>(gang.spec.gang.estimate_ms) / kMsPerHour;
  }
  oversight_.measured(last.turn, GangPolicies::kGoodput, gang::goodput(use));
}

}  // namespace tierpilot
