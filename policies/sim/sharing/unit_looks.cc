#include "policies/sim/sharing/unit_looks.h"

#include <algorithm>

namespace tierpilot::sharing {

UnitLooks::UnitLooks(size_t units, double period_s, double part)
    : period_s_(period_s),
      part_(part),
      earliest_s_(period_s),
      queue_due_s_(kNoPromise),
      due_s_(units, 0) {}

double UnitLooks::next_s() const {
  const double due_s = *std::min_element(due_s_.begin(), due_s_.end());
  return std::max(earliest_s_, std::min(due_s, queue_due_s_));
}

void UnitLooks::looked(size_t unit, double now_s, const RunningJobs& running) {
  due_s_[unit] = part_ > 0 ? kNoPromise : 0;
  for (const uint64_t id : running.on_unit(unit)) {
    const auto& job = *running.find(id);
    const double next_s = now_s + std::max(period_s_, part_ * job.left_s);
    due_s_[unit] = std::min(due_s_[unit], running.has_shown(job, now_s) ? next_s : 0);
  }
}

bool UnitLooks::ended(double now_s, double urgent_s) {
  const bool queue_due = part_ == 0 || queue_due_s_ <= now_s;
  earliest_s_ = now_s + period_s_;
  queue_due_s_ = urgent_s < kNoPromise ? now_s + part_ * urgent_s : kNoPromise;
  return queue_due;
}

}  // namespace tierpilot::sharing
