// Gathers a run's figures while it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sim/model/service.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/results.h"

namespace tierpilot::sim {

class Recorder {
 public:
  explicit Recorder(const Workload& workload);

  // Call before the state changes: it has been like this since the last call.
  void passed(int64_t now_ns, size_t queued, uint64_t busy_units, uint64_t total_units);
  void served(const Service& service);
  void rewarded(double reward);
  void finished(const Task& task, int64_t started_ns, int64_t now_ns, double alone_s);
  RunResult result();

  RunResult counts;  // those that only count are added to directly

 private:
  struct User {
    double slowdown_sum = 0;
    uint64_t tasks = 0;
  };
  double fairness() const;

  std::vector<float> waits_s_, responses_s_;
  std::vector<User> users_;
  int64_t first_ns_ = 0, last_end_ns_ = 0;
  int64_t last_ns_ = 0;
  // Exact, so that it does not matter in how many steps a time passes: 10,000 units have more
  // nanoseconds in ten days than a double can count.
  __extension__ using UnitNs = __int128;
  UnitNs busy_unit_ns_ = 0, unit_ns_ = 0;
  UnitNs busy_until_end_ = 0, units_until_end_ = 0;
  double reward_sum_ = 0;
  int64_t next_sample_ns_ = 0, sample_every_ns_ = 1'000'000;
};

}  // namespace tierpilot::sim
