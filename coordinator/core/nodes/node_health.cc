#include "coordinator/core/nodes/node_health.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot {
namespace {

// More tasks than this in line for one node that cannot start them: the first are over anyhow.
constexpr size_t kMostKeptOff = 4096;

}  // namespace

void NodeHealth::keep_off(uint64_t task, uint32_t faults, int64_t now_ns) {
  constexpr int64_t kFirst_ns = 1'000'000'000, kLongest_ns = 60'000'000'000;
  const int64_t pause_ns = std::min(kLongest_ns, kFirst_ns << std::min(faults, 6U));
  if (kept_off_.size() >= kMostKeptOff && !kept_off_.contains(task))
    kept_off_.erase(kept_off_.begin());
  kept_off_[task] = now_ns + pause_ns;
}

void NodeHealth::pause(const std::string& why, int64_t now_ns) {
  distrusted_ = true;
  why_ = why;
  pause_ns_ = std::clamp(pause_ns_ * 2, kFirstPause_ns, kLongestPause_ns);
  paused_until_ns_ = now_ns + pause_ns_;
}

bool NodeHealth::failed_to_start(uint64_t task, const std::string& why, int64_t now_ns) {
  strikes_.insert(task);
  if (paused() || (!distrusted_ && strikes_.size() < kStrikes)) return false;
  pause(distrusted_ ? why : fmt::format("{} tasks in a row did not start: {}", kStrikes, why),
        now_ns);
  return true;
}

bool NodeHealth::refused(const std::string& why, int64_t now_ns) {
  if (paused()) return false;
  pause("it takes no tasks: " + why, now_ns);
  return true;
}

bool NodeHealth::started() {
  const bool was_distrusted = distrusted_;
  strikes_.clear();
  distrusted_ = false;
  pause_ns_ = paused_until_ns_ = 0;
  why_.clear();
  return was_distrusted;
}

bool NodeHealth::tick(int64_t now_ns) {
  const bool over = paused() && now_ns >= paused_until_ns_;
  if (over) paused_until_ns_ = 0;
  return std::erase_if(kept_off_, [&](const auto& kept) { return now_ns >= kept.second; }) > 0 ||
         over;
}

std::string NodeHealth::why() const {
  if (!distrusted_) return {};
  return (paused() ? "gets no tasks for now: " : "gets one task at a time, on trial: ") + why_;
}

}  // namespace tierpilot
