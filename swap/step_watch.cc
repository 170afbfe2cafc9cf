#include "swap/step_watch.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace tierpilot::swap {
namespace {

constexpr int64_t kOfInterpreter = 1 << 20;  // that it takes beside tensors
// That looking may take of a step, beside as long as is computed: what glibc keeps of thousands of
// small tensors takes it longer to give back the more there are.
constexpr int64_t kLooking_ns = 50'000'000;

}  // namespace

int64_t StepWatch::since_begin_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
}

int64_t StepWatch::computed_ns() const {
  const auto took =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - last_).count();
  return computed_ns_ + std::max<int64_t>(took - pending_stall_ns_, 0);
}

void StepWatch::begin(bool closely) {
  step_ = {};
  computed_ns_ = looking_ns_ = 0;
  begin_ = last_ = Clock::now();
  delay_ = delay();
  passes_ns_ = passes_stall_ns_ = waited_ns_ = 0;
  stall_ns_ = pending_stall_ns_ = peak_bytes_ = passes_peak_bytes_ = other_bytes_ = 0;
  interval_most_ = interval_rise_ = 0;
  observes_ = complete_ = closely;
  rises_.clear();
  if (closely) look_again();
  memory_.reset_peak();
  at_begin_ = at_event_ = memory_.now();
}

// As the kernel counts it: nanoseconds on a processor, waiting for one, and how often.
StepWatch::Delay StepWatch::delay() {
  std::ifstream file("/proc/thread-self/schedstat");
  int64_t ran_ns = 0, waited_ns = 0;
  return file >> ran_ns >> waited_ns ? Delay{gettid(), waited_ns} : Delay{};
}

// What is free is no part of what an interval needs. Where it stays, the next one is thought to
// need that much more, which changes nothing where the device holds little.
void StepWatch::look_again() {
  at_event_ = memory_.now();
  if (at_event_ >= little_bytes_ && looking_ns_ <= kLooking_ns + computed_ns_) {
    const auto begin = since_begin_ns();
    memory_.give_back();
    looking_ns_ += since_begin_ns() - begin;
    at_event_ = memory_.now();
  }
  interval_most_ = interval_rise_ = 0;
  memory_.reset_peak();
}

void StepWatch::make_room(int64_t bytes) {
  if (!near(bytes)) return;
  const auto next = step_.time_ns.size();
  const auto rise = next < last_rises_.size() ? last_rises_[next] : 0;
  const auto excess = memory_.now() + rise - bytes;
  if (excess <= 0) return;
  if (!observes_) return give_back(excess);
  const auto most = memory_.peak();
  peak_bytes_ = std::max(peak_bytes_, most);
  // Where nothing was computed since the event, what is given back is none of the interval's.
  if (most - at_event_ > kOfInterpreter) {
    interval_most_ = std::max(interval_most_, most);
    interval_rise_ = std::max(interval_rise_, most - at_event_);
  }
  give_back(excess);
  memory_.reset_peak();
  at_event_ = memory_.now();
}

void StepWatch::give_back(int64_t bytes) {
  const auto begin = since_begin_ns();
  memory_.give_back(bytes);
  ++given_back_;
  giving_ns_ += since_begin_ns() - begin;
}

// Where it is turned on with the first event, what that event's interval took is not known closely.
void StepWatch::observe(bool on, int64_t resident) {
  if (on && !observes_ && step_.time_ns.size() == 1) {
    other_bytes_ = std::max<int64_t>(memory_.peak() - resident, 0);
    step_.other_bytes.push_back(other_bytes_);
    peak_bytes_ = std::max(peak_bytes_, memory_.peak());
    rises_.push_back(0);
    complete_ = true;
    look_again();
  }
  observes_ = on;
  complete_ = complete_ && on;
}

void StepWatch::event(int64_t fresh, int64_t resident) {
  const auto now = Clock::now();
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
  step_.time_ns.push_back(std::max<int64_t>(took - std::exchange(pending_stall_ns_, 0), 0));
  computed_ns_ += step_.time_ns.back();
  if (observes_) {
    const auto most = std::max(memory_.peak(), interval_most_);
    peak_bytes_ = std::max(peak_bytes_, most);
    other_bytes_ = std::max<int64_t>(most - resident - fresh, 0);
    step_.other_bytes.push_back(other_bytes_);
    rises_.push_back(std::max<int64_t>(memory_.peak() - at_event_, interval_rise_));
    look_again();
    last_ = Clock::now();  // looking takes longer than what is looked at
  } else {
    last_ = now;
  }
}

void StepWatch::passed() {
  passes_ns_ = since_begin_ns();
  passes_stall_ns_ = stall_ns_;
  passes_peak_bytes_ = peak_bytes();
  const auto now = delay();
  waited_ns_ = now.thread == delay_.thread ? now.ns - delay_.ns : 0;
}

StepEnd StepWatch::end(int64_t resident, int64_t copying_ns) {
  event(0, resident);
  peak_bytes_ = std::max(peak_bytes_, memory_.peak());
  growth_bytes_ = memory_.now() - at_begin_;
  last_peak_ = peak_bytes_;
  if (complete_)
    last_rises_ = std::exchange(rises_, {});
  else
    step_.other_bytes.clear();
  return {.step = std::exchange(step_, {}),
          .step_ns = since_begin_ns(),
          .stall_ns = stall_ns_,
          .peak_bytes = peak_bytes_,
          .passes_peak_bytes = passes_peak_bytes_,
          .passes_ns = passes_ns_,
          .passes_stall_ns = passes_stall_ns_,
          // What its own copies can have taken is the plan's.
          .others_ns = std::clamp<int64_t>(waited_ns_ - copying_ns, 0, passes_ns_)};
}

}  // namespace tierpilot::swap
