// Virtual time: everything that happens is an event at its moment, one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "base/clock.h"

namespace tierpilot::dst {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000 * kMs;

// A process: what is to happen in it is dropped once it is dead, and waits while it is stopped.
struct Life {
  bool alive = true;
  int64_t stopped_until_ns = 0;
  // Never shorter than it is: what waits keeps its order.
  void stop_until(int64_t ns) { stopped_until_ns = std::max(stopped_until_ns, ns); }
};
using LifePtr = std::shared_ptr<Life>;

class Loop {
 public:
  int64_t now_ns() const { return now_ns_; }
  void after(int64_t delay_ns, LifePtr life, std::function<void()> what);
  // The next event; false: there is none before `until_ns`, and it is that moment now.
  bool step(int64_t until_ns);

 private:
  struct Event {
    int64_t at_ns;
    uint64_t number;  // those of one moment happen in the order in which they were set
    LifePtr life;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : number > other.number;
    }
  };
  int64_t now_ns_ = 0;
  uint64_t last_ = 0;
  std::priority_queue<Event> events_;
};

// The clocks of one machine: boot time runs a little fast or slow, stands still while a hypervisor
// has the machine paused, and somebody sets the wall clock.
class MachineClock final : public Clock {
 public:
  MachineClock(const Loop& loop, double rate) : loop_(loop), rate_(rate) {}
  int64_t boot_ns() const override { return local(ran_ns()) - local(booted_ns_) + kSecond; }
  int64_t wall_ms() const override { return kEpochMs + loop_.now_ns() / kMs + stepped_ms_; }
  uint64_t boot_id() const override { return boots_; }
  void reboot() {
    ++boots_;
    still_until_ns_ = std::min(still_until_ns_, loop_.now_ns());
    booted_ns_ = ran_ns();
  }
  void stand_still(int64_t ns) {
    if (still_ns() == 0) {
      stood_ns_ += still_until_ns_ - still_from_ns_;
      still_from_ns_ = loop_.now_ns();
    }
    still_until_ns_ = std::max(still_until_ns_, loop_.now_ns() + ns);
  }
  // For how long yet.
  int64_t still_ns() const { return std::max<int64_t>(still_until_ns_ - loop_.now_ns(), 0); }
  void step_wall(int64_t ms) { stepped_ms_ += ms; }
  // How long until its boot time is `boot_ns`, as the loop counts.
  int64_t until(int64_t boot) const {
    return still_ns() + static_cast<int64_t>(static_cast<double>(boot - boot_ns()) / rate_) + 1;
  }

 private:
  static constexpr int64_t kEpochMs = 1'700'000'000'000;
  // How long the machine has run since the beginning of all.
  int64_t ran_ns() const {
    const int64_t since_ns = std::min(loop_.now_ns(), still_until_ns_) - still_from_ns_;
    return loop_.now_ns() - stood_ns_ - since_ns;
  }
  int64_t local(int64_t ns) const { return static_cast<int64_t>(static_cast<double>(ns) * rate_); }
  const Loop& loop_;
  double rate_;
  uint64_t boots_ = 1;
  int64_t booted_ns_ = 0;
  int64_t stepped_ms_ = 0;
  int64_t still_from_ns_ = 0;  // the last time
  int64_t still_until_ns_ = 0;
  int64_t stood_ns_ = 0;  // the times before
};

}  // namespace tierpilot::dst
