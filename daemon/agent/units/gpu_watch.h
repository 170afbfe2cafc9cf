// Watches the node's GPUs through NVML, in a thread of its own: waiting for an event blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/agent/gpus/driver_thread.h"
#include "daemon/topology/nvml_events.h"

namespace tierpilot::agent {

// Of a device, not of what ran on it.
struct GpuFault {
  std::string gpu;     // UUID
  std::string kind;    // "Xid 79", "device lost": failures of a kind are counted together
  std::string detail;  // for people
};

// What is told of devices is turned into faults: an Xid of an application is none, the same one
// again within seconds is no second one, and a device that is lost after an Xid of its own has
// failed once. Pure.
class GpuFaults {
 public:
  static constexpr int64_t kSame_ns = 10'000'000'000;   // of one kind
  static constexpr int64_t kCause_ns = 60'000'000'000;  // between an Xid and the loss it ends in

  std::vector<GpuFault> xids(const std::vector<XidEvent>& events, int64_t now_ns);
  // All that are lost now.
  std::vector<GpuFault> lost(const std::set<std::string>& gpus, int64_t now_ns);

 private:
  std::map<std::pair<std::string, std::string>, int64_t> last_ns_;  // by device and kind
  std::map<std::string, int64_t> last_fault_ns_;                    // by device
  std::set<std::string> lost_;
};

class GpuWatch {
 public:
  struct Hooks {
    std::function<void(std::function<void()>)> post;  // to the loop, from any thread
    // On the loop.
    std::function<void(const GpuFault&)> failed;
    std::function<void(const std::string& gpu, bool lost)> changed;
  };
  struct Options {
    std::string library = "libnvidia-ml.so.1";
    unsigned wait_ms = 500;  // for an event, between two questions to the devices
    int64_t reopen_ns =
        10'000'000'000;  // a driver shows a device that came back to new sessions only
  };

  GpuWatch(NvmlEvents events, Options options, const Clock& clock, Hooks hooks);
  void stop() { thread_.stop(); }

 private:
  DriverThread thread_;
};

}  // namespace tierpilot::agent
