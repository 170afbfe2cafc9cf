// Who of those on a GPU may run now. Those that saturate it take turns that exclude each other's:
// a share of wall time, and so of their speed alone. Those that do not run beside them, as most of
// the time they wait for their hosts anyway, and are stopped only for what they use beyond their
// shares. Pure: the times are the caller's, of a clock that never goes back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "daemon/agent/gpus/gpu_demand.h"
#include "daemon/agent/gpus/gpu_turns.h"
#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

class GpuSchedule {
 public:
  // Takes part from now on, or has another share; thousandths of the GPU's time, 0 is 1.
  void set(AttemptId attempt, uint32_t milli);
  // Of wall time, whatever it uses and others do.
  void set_beside(AttemptId attempt, uint32_t milli);
  void remove(AttemptId attempt);
  bool has(AttemptId attempt) const { return members_.contains(attempt); }
  bool empty() const { return members_.empty(); }

  // Brings all up to now: before anything else is asked or told, and after it was told.
  void advance(int64_t now_ns);
  bool runs(AttemptId attempt) const;
  // When to advance again.
  int64_t next_ns() const;

  // As of GpuTurns, of those that exclude each other.
  std::optional<AttemptId> leaves(int64_t now_ns) const { return exclusive_.leaves(now_ns); }
  void runs_on(int64_t now_ns) { exclusive_.runs_on(now_ns); }

  // Of the GPU's time, by the driver's samples, since it was last told; the others' is none.
  void used(const std::map<AttemptId, int64_t>& used_ns);
  // The driver told of no samples. One such look changes nothing; where none come for seconds, and
  // at the beginning: exclusive turns, by the clock.
  void unmeasured();

 private:
  struct Member {
    uint32_t milli = 0;
    bool by_clock = false;  // beside others
    GpuDemand demand;
    GpuTurns own;        // beside others; empty: it takes exclusive turns
    int64_t ran_ns = 0;  // since its use was last told
  };

  bool is_exclusive(const Member& member) const {
    return !member.by_clock && member.demand.saturates();
  }
  void place(AttemptId attempt, Member& member);
  GpuDemand::Use others(const Member& member, const std::map<AttemptId, int64_t>& used_ns,
                        int64_t since_ns) const;

  std::map<AttemptId, Member> members_;
  GpuTurns exclusive_;
  int64_t now_ns_ = 0, told_ns_ = 0;
  std::optional<int64_t> unmeasured_since_ns_;
};

}  // namespace tierpilot::agent
