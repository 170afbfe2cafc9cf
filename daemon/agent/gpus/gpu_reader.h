// Reads what the node's GPUs do every few seconds, in a thread of its own: the driver may take its
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/agent/gpus/driver_thread.h"
#include "daemon/agent/gpus/gpu_reading.h"

namespace tierpilot::agent {

class GpuReader {
 public:
  struct Options {
    std::string library = "libnvidia-ml.so.1";
    int64_t period_ms = 5000;
  };
  // Of all that answer; with the reason where none can be asked.
  using Read = std::function<void(Result<std::vector<GpuReading>>)>;

  // `read` is called in the thread, and not after the end.
  GpuReader(Options options, Read read);
  void stop() { thread_.stop(); }

 private:
  DriverThread thread_;
};

}  // namespace tierpilot::agent
