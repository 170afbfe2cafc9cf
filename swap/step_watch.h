// Times and memory between the events of a step.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "policies/swap/learning/step_learner.h"
#include "swap/device/compute_device.h"

namespace tierpilot::swap {

class StepWatch {
 public:
  // `memory` has to outlive it.
  explicit StepWatch(DeviceMemory& memory) : memory_(memory) {}
  // What the device may hold, free memory included, without a need to know it closely.
  void set_little(int64_t bytes) { little_bytes_ = bytes; }

  // `closely`: what every interval takes is to be measured from the first one on.
  void begin(bool closely);
  // An event; `fresh` bytes that are now saved were made since the last one, `resident` bytes of
  // saved storages were in the device before.
  void event(int64_t fresh, int64_t resident);
  // Time that was a wait and no computing.
  void stalled(int64_t ns) { stall_ns_ += ns, pending_stall_ns_ += ns; }
  void observe(bool on, int64_t resident);
  bool observes() const { return observes_; }
  void save(const SavedStorage& storage) { step_.saves.push_back(storage); }
  void used(size_t save) { step_.uses.push_back(static_cast<uint32_t>(save)); }
  // All that was saved was asked for or dropped: what follows is no plan's.
  void passed();
  // Ends the last interval. `copying_ns`: of processors, by this library's own threads in the step.
  StepEnd end(int64_t resident, int64_t copying_ns);
  // Bytes that the device holds more at the end than at the begin of the step.
  int64_t growth_bytes() const { return growth_bytes_; }

  const ObservedStep& step() const { return step_; }
  ObservedStep& step() { return step_; }
  int64_t since_begin_ns() const;
  // Time of computing so far: without waits, and without what looking takes.
  int64_t computed_ns() const;
  // Gives back what is free where the next interval might not fit into `bytes` beside it. Nothing
  // is looked at while steps stay far below.
  void make_room(int64_t bytes);
  // Whether it might look.
  bool near(int64_t bytes) const { return last_peak_ >= bytes / 4 * 3; }
  // How often that was, and how long it took.
  int64_t given_back() const { return given_back_; }
  int64_t giving_ns() const { return giving_ns_; }
  // Gives back so much of what is free, where there is.
  void give_back(int64_t bytes);
  // What the device holds now.
  int64_t held_bytes() const { return memory_.now(); }
  // The most since the step began, or since it was looked at last.
  int64_t most_held_bytes() const { return memory_.peak(); }
  // The most since the step began.
  int64_t peak_bytes() const { return std::max(peak_bytes_, memory_.peak()); }
  // What the device held beside saved storages in the interval that was observed last.
  int64_t other_bytes() const { return other_bytes_; }
  // The same while it observes, else 0.
  int64_t observed_other_bytes() const { return observes_ ? other_bytes_ : 0; }

 private:
  using Clock = std::chrono::steady_clock;
  // How long a thread has waited for a processor since it began.
  struct Delay {
    int thread = 0;
    int64_t ns = 0;
  };
  static Delay delay();
  void look_again();

  bool observes_ = true, complete_ = true;
  DeviceMemory& memory_;
  ObservedStep step_;
  Clock::time_point begin_{}, last_{};
  Delay delay_{};  // when the step began
  int64_t passes_ns_ = 0, passes_stall_ns_ = 0, waited_ns_ = 0;
  int64_t stall_ns_ = 0, pending_stall_ns_ = 0, computed_ns_ = 0, looking_ns_ = 0;
  int64_t at_event_ = 0, last_peak_ = 0, little_bytes_ = 0;
  int64_t given_back_ = 0, giving_ns_ = 0;
  std::vector<int64_t> rises_, last_rises_;  // by interval: how far memory rose above its begin
  int64_t peak_bytes_ = 0, passes_peak_bytes_ = 0, other_bytes_ = 0, growth_bytes_ = 0,
          at_begin_ = 0;
  // Of the interval that is observed, until memory was given back within it: the most that was
  // held, and how far it had risen.
  int64_t interval_most_ = 0, interval_rise_ = 0;
};

}  // namespace tierpilot::swap
