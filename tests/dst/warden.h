// A node's processes: the warden and the tasks it runs, which the daemon's death ends a moment
// later and the lease's end at its time, whatever the daemon does.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "daemon/agent/tasks/swap_room.h"
#include "daemon/agent/tasks/task_runner.h"
#include "tests/dst/judge/judge.h"
#include "tests/dst/loop.h"
#include "tests/dst/random.h"
#include "tests/dst/swapping.h"
#include "tests/dst/work.h"

namespace tierpilot::dst {

// Records of ends on a node's disk: what a daemon tells that was not there.
using KeptEnds = std::map<AttemptId, agent::ExitReport>;

class Warden final : public agent::TaskRunner {
 public:
  struct Surroundings {
    Loop& loop;
    const MachineClock& clock;
    Judge& judge;
    Random& random;
    int node = 0;
    LifePtr machine;
    LifePtr daemon;
    KeptEnds& ends;
    bool notices_pauses = true;
    std::function<bool()> refuses;           // the machine cannot start processes now
    std::function<void(AttemptId)> started;  // told to the daemon
    std::function<void(AttemptId, agent::ExitReport)> exited;
    std::function<void(int64_t deadline_ns)> leased;
    std::function<void()> end_kept;  // may end the daemon
    std::function<void(const agent::Assignment&)> began = [](const auto&) {};
    std::function<void(AttemptId)> asked_to_end = [](AttemptId) {};
    std::function<bool()> disk_fails = [] { return false; };
    std::function<bool(const std::string& gpu)> gpu_is_lost = [](const auto&) { return false; };
    SwapTiers swap_tiers{};
  };
  explicit Warden(Surroundings surroundings);

  Status launch(const agent::LaunchOrder& order) override;
  void cancel(AttemptId attempt, const std::string& reason) override;
  Status pause(AttemptId, bool) override { return fail(ErrorCode::kUnavailable, "not simulated"); }
  void confine(AttemptId attempt, const agent::CpuShare& share) override;
  void confine_gpu(AttemptId attempt, uint32_t milli) override;
  void forget(uint64_t) override {}
  void acknowledged(AttemptId attempt) override { at_.ends.erase(attempt); }

  // `sent_ns`: when it was asked for, as the machine's boot clock stood.
  void extend_lease(int64_t deadline_ns, int64_t sent_ns);
  // The machine stands still for so long, and its clock with it. Within kNoticeNs after that the
  // warden notices, and takes the time off the lease.
  static constexpr int64_t kNoticeNs = kSecond, kKillNs = 200 * kMs;
  void machine_paused(int64_t ns);
  // The daemon is gone: all is killed before long. The next daemon waits until idle().
  void daemon_died();
  // Together with the machine.
  void power_cut();
  bool idle() const { return running_.empty(); }
  // All that runs on the GPU of this number among the shared units ends.
  void gpu_failed(uint32_t unit, const std::string& reason);
  // What processes have of a shared unit.
  struct Part {
    AttemptId attempt;
    uint32_t unit = 0;
    uint32_t milli = 0;  // 0: nobody holds them to a share yet
    uint64_t memory_bytes = 0;
  };
  std::vector<Part> parts() const;
  uint64_t swap_given_bytes() const { return swap_room_.given_bytes(); }
  struct Progress {
    int64_t used_ns = 0;    // of its unit, as time alone on it
    int64_t waited_ns = 0;  // that it was held back
    uint64_t iteration = 0;
    uint64_t iterations = 0;
  };
  // Nothing: it does not run.
  std::optional<Progress> progress(AttemptId attempt) const;

 private:
  void end(AttemptId attempt, TaskEnd how, int code, const std::string& reason,
           bool node_fault = false);
  void give(AttemptId attempt, uint32_t milli);
  Status give_swap_room(const agent::Assignment& assignment);
  // Once its work is done.
  void end_later(AttemptId attempt);
  void end_all(TaskEnd how, const std::string& reason);
  void watch_lease();
  void end_if_lapsed();

  Surroundings at_;
  Run run_of(AttemptId attempt) const { return {attempt.task, attempt.attempt, at_.node}; }

  struct Running {
    bool end_asked = false;
    bool is_kept = false;  // its end is, when it comes to it by itself
    int64_t began_ns = 0;
    uint64_t iterations = 0;
    int code = 0;
    Work work;  // as iterations before its checkpoint are done
    std::optional<agent::UnitPart> part{};
    uint64_t timer = 0;  // the one that counts
  };
  std::map<AttemptId, Running> running_;
  agent::SwapRoom swap_room_;
  int64_t lease_ns_ = 0;
  std::map<int64_t, int64_t> noticed_;  // pauses and how long they were, by boot time
  bool watching_ = false;
};

}  // namespace tierpilot::dst
