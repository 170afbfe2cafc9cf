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

// The clocks of one machine: boot time runs a little fast or slow, and somebody sets the wall
// clock.
class MachineClock final : public Clock {
 public:
  MachineClock(const Loop& loop, double rate) : loop_(loop), rate_(rate) {}
  int64_t boot_ns() const override { return local(loop_.now_ns()) - local(booted_ns_) + kSecond; }
  int64_t wall_ms() const override { return kEpochMs + loop_.now_ns() / kMs + stepped_ms_; }
  void reboot() { booted_ns_ = loop_.now_ns(); }
  void step_wall(int64_t ms) { stepped_ms_ += ms; }
  // How long until its boot time is `boot_ns`, as the loop counts.
  int64_t until(int64_t boot) const {
    return static_cast<int64_t>(static_cast<double>(boot - boot_ns()) / rate_) + 1;
  }

 private:
  static constexpr int64_t kEpochMs = 1'700'000'000'000;
  int64_t local(int64_t ns) const { return static_cast<int64_t>(static_cast<double>(ns) * rate_); }
  const Loop& loop_;
  double rate_;
  int64_t booted_ns_ = 0;
  int64_t stepped_ms_ = 0;
};

}  // namespace tierpilot::dst
