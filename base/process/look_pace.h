// How often one may look at a task's processes and threads: as a task can have as many as it likes,
// looks at one take at most a twentieth of a thread's time, those at large ones being seldom.
#pragma once

#include <time.h>

#include <cstdint>

namespace tierpilot {

class LookPace {
 public:
  // Looks, if it is time.
  template <class Look>
  void look(Look&& look) {
    if (time_ns(CLOCK_BOOTTIME) < due_ns_) return;
    // What others take of the processor meanwhile makes looks no more seldom.
    const int64_t begin_ns = time_ns(CLOCK_THREAD_CPUTIME_ID);
    look();
    const int64_t took_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    due_ns_ = time_ns(CLOCK_BOOTTIME) + (kOneOf - 1) * took_ns;
  }

 private:
  static constexpr int64_t kOneOf = 20;
  static int64_t time_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  int64_t due_ns_ = 0;
};

}  // namespace tierpilot
