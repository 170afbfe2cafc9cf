// A daemon's lease: what it lets begin, and what ends with it.
#pragma once

#include <cstdint>

#include "daemon/agent/node/lease.h"
#include "daemon/agent/tasks/task_table.h"
#include "tests/dst/loop.h"
#include "tests/dst/warden.h"

namespace tierpilot::dst {

class Leasing {
 public:
  struct Surroundings {
    Loop& loop;
    const MachineClock& clock;
    LifePtr life;  // the daemon's
    Warden& warden;
    agent::TaskTable& tasks;
  };
  explicit Leasing(Surroundings surroundings) : at_(std::move(surroundings)) {}

  const agent::Lease& lease() const { return lease_; }
  // With the answer to a call that was sent then.
  void granted(int64_t sent_ns, uint32_t lease_ms);
  void end_lapsed();

 private:
  void watch();

  Surroundings at_;
  agent::Lease lease_;
  bool watched_ = false;
};

}  // namespace tierpilot::dst
