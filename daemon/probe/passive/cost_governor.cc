#include "daemon/probe/passive/cost_governor.h"

#include <algorithm>

namespace tierpilot {
namespace {

// Shorter turns would wake the daemon for little.
constexpr double kShortestTurnNs = 1e9;

// Then it is decided anew: a tiny share would make for waits that no clock can count.
constexpr double kLongestPauseNs = 3600e9;

// Between looks at attached programs.
constexpr double kShortestLookNs = 10e6, kLongestLookNs = 250e6;
// CPUs' worth of cost that calls are expected to reach until they were seen to cost more: one
// thread that does nothing else takes less.
constexpr double kUsualSpending = 0.1;

}  // namespace

CostGovernor::CostGovernor(const Options& options, int64_t now_ns)
    : options_(options), credit_ns_(reserve_ns()), now_ns_(now_ns) {}

double CostGovernor::reserve_ns() const {
  return std::max(2.0 * static_cast<double>(attach_ns_ + detach_ns_),
                  options_.cpu_share * kShortestTurnNs);
}

void CostGovernor::settle(int64_t now_ns, uint64_t calls) {
  const auto passed_ns = static_cast<double>(now_ns - now_ns_);
  const double spent_ns =
      static_cast<double>(calls - calls_) * static_cast<double>(options_.call_ns);
  if (attached_ && passed_ns >= kShortestLookNs) spending_ = spent_ns / passed_ns;
  credit_ns_ = std::min(credit_ns_ + options_.cpu_share * passed_ns - spent_ns, reserve_ns());
  now_ns_ = now_ns;
  calls_ = calls;
}

CostGovernor::Decision CostGovernor::decide(int64_t now_ns, uint64_t calls) {
  settle(now_ns, calls);
  if (!attached_) {
    const double missing_ns = reserve_ns() - credit_ns_;
    if (missing_ns <= 0) return {Step::kAttach, 0};
    const double wait_ns = std::min(missing_ns / options_.cpu_share, kLongestPauseNs);
    return {Step::kStay, static_cast<int64_t>(wait_ns) + 1};
  }
  const double left_ns = credit_ns_ - static_cast<double>(detach_ns_);
  if (left_ns <= 0) return {Step::kDetach, 0};
  const double look_ns =
      std::clamp(left_ns / std::max(spending_, kUsualSpending), kShortestLookNs, kLongestLookNs);
  return {Step::kStay, static_cast<int64_t>(look_ns)};
}

void CostGovernor::toggled(bool attached, int64_t now_ns, int64_t cpu_ns) {
  attached_ = false;  // so they were for part of the step at least: no rate can be told from it
  settle(now_ns, calls_);
  attached_ = attached;
  (attached ? attach_ns_ : detach_ns_) = cpu_ns;
  credit_ns_ -= static_cast<double>(cpu_ns);
}

}  // namespace tierpilot
