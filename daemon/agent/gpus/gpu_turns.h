// Who of those that share a GPU runs now, where they take turns on it: deficit round robin
// (Shreedhar and Varghese, 1995) of wall time. Each earns time by its share, and has a turn when
// that makes one up; what a turn was too long, and what the GPU was used after it by kernels that
// were queued, is paid for by waiting. Nobody gets more than its share where time is left over.
// Pure: the times are the caller's, of a clock that never goes back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

class GpuTurns {
 public:
  // A turn is the share of this: long beside the milliseconds that stopping, continuing and the
  // kernels under way take, short beside what a person or a heartbeat waits for.
  static constexpr int64_t kCycle_ns = 300'000'000;
  static constexpr int64_t kNever_ns = INT64_MAX;

  // Takes part from now on, or has another share; thousandths, 0 is 1. Who is alone with 1000 is
  // never stopped.
  void set(AttemptId attempt, uint32_t milli);
  void remove(AttemptId attempt);
  bool has(AttemptId attempt) const { return members_.contains(attempt); }
  bool empty() const { return members_.empty(); }

  // Brings all up to now: before anything else is asked or told.
  void advance(int64_t now_ns);
  // The only one that may run; nobody: all stand still.
  std::optional<AttemptId> runs() const;
  // When to advance again.
  int64_t next_ns() const { return next_ns_; }

  // Who stopped last, where the next one would begin now.
  std::optional<AttemptId> leaves(int64_t now_ns) const;
  // It is seen to run still: its turn is longer by that, for a while.
  void runs_on(int64_t now_ns);

  // Of the GPU's time, by the driver's samples, which may come late: since it was last told.
  // Those that take no turns here took so much of its turns, which it has later.
  void others_used(AttemptId attempt, int64_t others_ns);
  void used(AttemptId attempt, int64_t used_ns);
  // What was used up to now will not be told.
  void unmeasured();

 private:
  struct Member {
    uint32_t asked_milli = 0;
    uint32_t milli = 0;  // that it has
    int64_t credit_ns = 0;
    int64_t drain_ns = 0;    // of the end of each turn, in which its kernels come to their end
    int64_t charged_ns = 0;  // turns since its use was last told
    int64_t error_ns = 0;    // of the drain: used beyond turns, smoothed
    int64_t over_ns = 0;     // what it used beyond its turns
  };
  struct Turn {
    AttemptId attempt;
    int64_t stop_ns = 0;  // from then on it stands still
    bool drains = false;
    int64_t stopped_ns = 0;
    int64_t end_ns = 0;  // from then on somebody else may run
  };

  static int64_t of_share(const Member& member, int64_t time_ns);
  static int64_t quantum_ns(const Member& member);
  static void bound(Member& member);
  void fit();
  static void set_fit(Member& member, uint32_t milli);
  void end_turn();
  void begin_turn();
  void pay(Member& debtor, int64_t over_ns);

  std::map<AttemptId, Member> members_;
  std::optional<Turn> turn_;
  int64_t now_ns_ = 0;
  int64_t next_ns_ = kNever_ns;
};

}  // namespace tierpilot::agent
