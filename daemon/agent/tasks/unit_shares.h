// What attempts have of units that are not theirs alone: elastic ones of those that no other task
// takes, others a part of a unit that is shared. Owned by the event loop's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/agent/tasks/attempts.h"
#include "daemon/agent/tasks/cpu_allocator.h"
#include "daemon/agent/tasks/task_runner.h"

namespace tierpilot::agent {

// Of which several attempts have parts: a group of CPUs, or a GPU with the CPUs that feed it.
struct SharedUnit {
  std::vector<int> cpus;
  std::string gpu{};  // UUID; empty: the CPUs are what is shared
};

class UnitShares {
 public:
  UnitShares(const Attempts& attempts, const CpuAllocator& cpus, std::vector<SharedUnit> units,
             TaskRunner& runner)
      : attempts_(attempts), cpus_(cpus), units_(std::move(units)), runner_(runner) {}

  const std::vector<SharedUnit>& units() const { return units_; }
  // Of one that has a part.
  const SharedUnit& unit_of(const Attempt& attempt) const {
    return units_[attempt.assignment.part->unit];
  }

  // The attempt is being launched: what it has to begin with.
  void begin(Attempt& attempt);
  // Its processes are there.
  void started(Attempt& attempt);
  // Gives a running attempt that is elastic or has a part of a unit so many thousandths of a unit,
  // within what it asked for and what others leave; gives what it has got. kNotFound, kInvalid for
  // any other.
  Result<uint32_t> set(AttemptId attempt, uint32_t milli_units);
  // 0: it has units of its own that do not change, or does not run.
  uint32_t of(AttemptId attempt) const;
  // Running attempts with parts of units.
  std::vector<AttemptId> parts() const;
  // All running elastic attempts, after units were taken or given back.
  void fit();

 private:
  // Thousandths of units that elastic attempts share: all that others do not have.
  uint64_t shared_milli() const;
  Result<uint32_t> set_elastic(Attempt& attempt, uint32_t milli_units);
  uint32_t set_part(Attempt& attempt, uint32_t milli);
  void confine(Attempt& attempt);
  void confine_part(Attempt& attempt);
  void tell(Attempt& attempt, CpuShare share);

  const Attempts& attempts_;
  const CpuAllocator& cpus_;
  const std::vector<SharedUnit> units_;
  TaskRunner& runner_;
};

}  // namespace tierpilot::agent
