// When a running daemon may measure its tiers again: seldom, cheaply, and not on a busy machine.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"

namespace tierpilot {

// Owned by one thread:
//
//   once next_ns() is over: if (schedule.due()) measure, then schedule.measured(cpu_s)
class ReprobeSchedule {
 public:
  struct Options {
    double cpu_share = 0.001;              // of one core that measuring may take, over time
    int64_t shortest_ns = 60'000'000'000;  // between two, however cheap they are
    int64_t longest_ns = 900'000'000'000;  // a busy machine is asked again after so long at most
    double busy = 0.5;                     // the share of the CPUs from which a machine is busy
  };
  // How busy the machine is, as a share of its CPUs.
  using LoadSource = std::function<double()>;

  // The first one is due as if the start-up's cost of `cpu_s` were one of them.
  ReprobeSchedule(Options options, const Clock& clock, LoadSource load, double cpu_s);

  // By the clock's boot time.
  int64_t next_ns() const { return next_ns_; }
  // False: not yet, or the machine is busy; then it is put off, twice as long each time.
  bool due();
  // What it took. The next one waits until its share of the time since pays for it.
  void measured(double cpu_s);
  // There is something new to measure: due once the machine is not busy, whatever the last cost,
  // as long as no more than four hours' share is overdrawn by it.
  void hurry();

 private:
  const Options options_;
  const Clock& clock_;
  const LoadSource load_;
  int64_t put_off_ns_;
  int64_t next_ns_ = 0;
  int64_t debt_until_ns_ = 0;  // what hurry() overdrew is paid back by later ones
};

// The load average of the last minute per CPU, or 0 where there is none.
double load_per_cpu();

}  // namespace tierpilot
