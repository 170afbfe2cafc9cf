// Looks at one shared GPU again and again, in a thread of its own: the driver and the control
// program of MPS may take their time, or hang.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/agent/gpus/driver_thread.h"
#include "daemon/agent/gpus/mps_control.h"
#include "daemon/topology/nvml.h"

namespace tierpilot::agent {

struct GpuLook {
  std::string gpu;                         // UUID
  std::map<pid_t, int64_t> busy_ns;        // that each process computed since the last look
  std::map<pid_t, uint64_t> memory_bytes;  // of the GPU's
  std::string unmeasured;                  // why these two are not known
  std::vector<pid_t> mps_servers;
  bool lost = false;         // the driver cannot reach it
  int64_t mps_asked_ns = 0;  // boot time; 0: this look did not ask
  bool mps_faulted = false;  // since it was asked before
  bool mps_gone = false;     // a server that there was then is not there any more
  bool mps_begun = false;    // its control daemon had to be started
  std::string mps_trouble;   // what is wrong with it; empty: nothing, or there is none
  uint64_t answers = 0;      // of ask(): all up to this one
};

// How long each process computed, of the driver's samples. Pure.
class GpuMeter {
 public:
  // By process, since the last time, which was so long ago. Samples tell nothing of those that did
  // not compute, so that one that takes turns was not busy ever since its last sample.
  std::map<pid_t, int64_t> add(const std::vector<GpuSample>& samples,
                               uint64_t since_us = 1'000'000);
  uint64_t newest_us() const { return newest_us_; }
  // Samples carry the time of day: where that was set back none would be newer than the newest, and
  // everybody idle. Whether it was since the last call: then what comes next is measured anew.
  bool was_set_back(int64_t wall_ms, int64_t boot_ns);

 private:
  std::optional<int64_t> ahead_ms_;  // the time of day, of the time since boot
  std::map<pid_t, uint64_t> last_us_;
  uint64_t newest_us_ = 0;
  uint64_t period_us_ = 1'000'000;  // of the driver: the shortest seen
};

class GpuPoll {
 public:
  struct Options {
    std::string library = "libnvidia-ml.so.1";
    std::string gpu;
    std::optional<MpsOptions> mps;  // nothing: without MPS
    int64_t period_ms = 250;
    int64_t mps_period_ms = 1000;
    int64_t mps_pause_ms = 15'000;  // after it did not answer
  };
  using Looked = std::function<void(GpuLook)>;

  // `looked` is called in the thread, and not after the end.
  GpuPoll(Options options, const Clock& clock, Looked looked);
  // Returns within what MPS takes and, for the driver, some seconds.
  ~GpuPoll();
  GpuPoll(const GpuPoll&) = delete;

  // A look begins soon; the number by which its answer is known.
  uint64_t ask();
  // No task is on it: a control daemon that hangs may be replaced.
  void set_idle(bool idle);
  void stop() { thread_.stop(); }

 private:
  class Looks;
  const std::shared_ptr<Looks> looks_;
  DriverThread thread_;
};

}  // namespace tierpilot::agent
