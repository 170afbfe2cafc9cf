#include "coordinator/policy_host/shared_policy.h"

#include <time.h>

#include <exception>

#include "base/log.h"
#include "policies/placement/fallback.h"

namespace tierpilot {
namespace {

// A new decision's share in the mean: an interrupt in the midst of one does not make it slow.
constexpr double kNewShare = 1.0 / 16;

// Of the thread: what others took of its core meanwhile is no fault of the policy.
int64_t cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

Decision decide_or_fall_back(Policy& policy, const View& view) {
  try {
    return policy.decide(view);
  } catch (const std::exception& error) {
    spdlog::error("a policy failed, the fallback decides: {}", error.what());
    Decision decision = fallback_decide(view);
    decision.fault = DecisionFault::kFailed;
    decision.reason = "the policy failed: " + decision.reason;
    return decision;
  }
}

Decision SharedPolicy::decide(const View& view) {
  const std::lock_guard lock(mutex_);
  return decide_timed(view);
}

std::optional<Decision> SharedPolicy::decide_if_quick(const View& view) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || (!trusted_ && usual_ns_ > kQuickNs)) return std::nullopt;
  return decide_timed(view);
}

Decision SharedPolicy::decide_timed(const View& view) {
  if (trusted_) return decide_or_fall_back(*policy_, view);
  const int64_t begin_ns = cpu_ns();
  Decision decision = decide_or_fall_back(*policy_, view);
  usual_ns_ += kNewShare * (static_cast<double>(cpu_ns() - begin_ns) - usual_ns_);
  return decision;
}

}  // namespace tierpilot
