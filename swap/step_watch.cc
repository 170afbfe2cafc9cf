#include "swap/step_watch.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

int64_t StepWatch::since_begin_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
}

void StepWatch::begin() {
  step_ = {};
  begin_ = last_ = Clock::now();
  stall_ns_ = pending_stall_ns_ = peak_bytes_ = other_bytes_ = 0;
  observes_ = complete_ = true;
  at_begin_ = memory_.now();
  memory_.reset_peak();
}

void StepWatch::observe(bool on) {
  observes_ = on;
  complete_ = complete_ && on;
}

void StepWatch::event(int64_t fresh) {
  const auto now = Clock::now();
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
  step_.time_ns.push_back(std::max<int64_t>(took - std::exchange(pending_stall_ns_, 0), 0));
  if (observes_) {
    const auto most = memory_.peak();
    peak_bytes_ = std::max(peak_bytes_, most);
    other_bytes_ = std::max<int64_t>(most - resident_ - fresh, 0);
    step_.other_bytes.push_back(other_bytes_);
    memory_.reset_peak();
    last_ = Clock::now();  // looking takes longer than what is looked at
  } else {
    last_ = now;
  }
}

StepEnd StepWatch::end() {
  event(0);
  peak_bytes_ = std::max(peak_bytes_, memory_.peak());
  growth_bytes_ = memory_.now() - at_begin_;
  if (!complete_) step_.other_bytes.clear();
  return {.step = std::exchange(step_, {}),
          .step_ns = since_begin_ns(),
          .stall_ns = stall_ns_,
          .peak_bytes = peak_bytes_};
}

}  // namespace tierpilot::swap
