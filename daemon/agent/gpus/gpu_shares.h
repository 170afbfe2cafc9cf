// Attempts with parts of GPUs: what they are told of theirs, what they used, and that they keep to
// it. Of compute MPS gives each a part of the GPU's multiprocessors; that part is fixed when a
// client begins, so that one with less later has turns of its own, in which others may run as well.
// Where there is no MPS those that want all of a GPU take turns on it, and who has none stands
// still (gpu_schedule.h). Of memory MPS refuses what is too much; elsewhere who has taken more is
// ended. Owned by the event loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/agent/gpus/gpu_poll.h"
#include "daemon/agent/gpus/gpu_schedule.h"
#include "daemon/agent/gpus/mps_part.h"
#include "daemon/agent/node/model.h"
#include "daemon/agent/tasks/task_processes.h"
#include "rpc/event_loop.h"

namespace tierpilot::agent {

// An end that was not the attempt's own doing, or for what it took of its GPU.
struct GpuEnd {
  TaskEnd how = TaskEnd::kLost;
  std::string reason;
  bool node_fault = false;

  // An end by its time limit, or by its user, is its own whatever became of its GPU meanwhile.
  bool explains(TaskEnd ended, const std::string& why) const {
    return ended == TaskEnd::kExited || ended == TaskEnd::kSignalled ||
           (ended == TaskEnd::kCancelled && why == reason);
  }
};

class GpuShares {
 public:
  struct Unit {
    std::string gpu;                   // UUID
    std::filesystem::path mps_folder;  // empty: without MPS
    uint32_t multiprocessors = 0;      // 0: not known
  };
  struct Hooks {
    // The attempt is to end at once.
    std::function<void(AttemptId, const std::string& reason)> end;
    // What speaks against new work on the GPU; empty: nothing.
    std::function<void(const std::string& gpu, const std::string& reason)> unhealthy;
    // The GPU is to be looked at soon; gives the number of the answer. 0: nobody looks.
    std::function<uint64_t(const std::string& gpu)> ask;
    std::function<void(const std::string& gpu, bool idle)> idle;
  };

  GpuShares(std::vector<Unit> units, EventLoop& loop, Executor& executor, const Clock& clock,
            Hooks hooks)
      : units_(std::move(units)),
        loop_(loop),
        executor_(executor),
        clock_(clock),
        hooks_(std::move(hooks)),
        self_(std::make_shared<GpuShares*>(this)) {}

  const std::vector<Unit>& units() const { return units_; }
  // What an attempt starts with that has this part.
  std::vector<std::pair<std::string, std::string>> environment(const std::string& gpu,
                                                               const UnitPart& part) const;
  void launched(AttemptId attempt, const std::string& gpu, const UnitPart& part);
  void started(AttemptId attempt, pid_t leader);
  bool has(AttemptId attempt) const { return running_.contains(attempt); }
  // Thousandths from now on.
  void set(AttemptId attempt, uint32_t milli);
  // It is asked to end: a process that stands still would not hear of it.
  void let_go(AttemptId attempt);
  // Calls back when it is known whether its GPU, or a fault of somebody else, took it along: after
  // the next look; where the driver does not answer for about 10 s, without knowing. For one that
  // has ended badly.
  void settle(AttemptId attempt, std::function<void()> done);
  // Nothing: its end was its own.
  std::optional<GpuEnd> ended(AttemptId attempt);

  // Of its GPU's time, weighed by the part of the multiprocessors that it may use.
  uint64_t used_ns(AttemptId attempt) const;
  // Of the GPU's memory, the most that it was seen with; 0: it was not seen.
  uint64_t peak_bytes(AttemptId attempt) const;
  // That it stood still for its share.
  uint64_t stood_ns(AttemptId attempt);

  void looked(const GpuLook& look);
  void device_failed(const std::string& gpu, const std::string& why);

  std::vector<MetricValue> metrics() const;

 private:
  struct Running {
    AttemptId attempt;
    std::string gpu;
    UnitPart part;
    TaskProcesses processes;
    LookPace standing_pace;
    uint32_t began_milli = 1000;    // of compute, that it has been given to the end
    uint32_t clients_milli = 1000;  // of the multiprocessors, that MPS has made of it
    bool on_gpu = false;            // before that it has no kernels that could disturb others
    uint64_t used_ns = 0;
    uint64_t peak_bytes = 0;
    bool stands = false;
    int64_t stands_since_ns = 0;
    uint64_t stood_ns = 0;
    bool ending = false;
    std::optional<GpuEnd> end;
  };
  struct Waiting {
    std::string gpu;
    uint64_t answer = 0;
    int64_t due_ns = 0;  // then without an answer
    std::function<void()> done;
  };

  const Unit* unit(const std::string& gpu) const;
  const Unit* mps_unit(const std::string& gpu) const;  // nothing: without MPS
  void watch_patience();
  void settle_those(const std::function<bool(const Waiting&)>& settled);
  // Of each attempt on the GPU, by what its processes and the servers of MPS used.
  std::map<AttemptId, int64_t> use_of(const GpuLook& look);
  void see_memory(Running& running, const GpuLook& look);
  void check_memory(Running& running, AttemptId attempt, uint64_t bytes);
  void see_use(Running& running, const GpuLook& look, int64_t used_ns);
  void see_turns(const GpuLook& look, const std::map<AttemptId, int64_t>& use);
  void join_turns(Running& running);
  void leave_turns(Running& running);
  void advance(GpuSchedule& turns);
  bool runs_on(Running& running);
  // Stops and continues, and looks again when the next turn is due.
  void take_turns();
  void wake_at(int64_t due_ns);
  void stand(Running& running, bool still);
  void count_standing(Running& running) const;
  void end(AttemptId attempt, Running& running, GpuEnd end);
  // One of MPS, by which all end that compute there.
  void see_fault(const GpuLook& look);
  size_t count_on(const std::string& gpu) const;
  // Whoever is on it goes on elsewhere.
  void end_all(const std::string& gpu, const std::string& why);
  void say_idle(const std::string& gpu);

  const std::vector<Unit> units_;
  EventLoop& loop_;
  Executor& executor_;
  const Clock& clock_;
  const Hooks hooks_;
  std::map<AttemptId, Running> running_;
  std::map<std::string, GpuSchedule> turns_;             // by GPU
  int64_t due_ns_ = GpuTurns::kNever_ns;                 // of the timer that counts
  std::map<std::string, std::vector<int64_t>> left_ns_;  // by GPU, since MPS was asked last
  std::vector<Waiting> waiting_;
  bool watching_patience_ = false;
  std::map<std::string, std::string> unmeasured_;  // by GPU, as told last
  uint64_t server_faults_ = 0, control_starts_ = 0, stops_ = 0;
  // Timers that outlive it find it gone.
  std::shared_ptr<GpuShares*> self_;
};

}  // namespace tierpilot::agent
