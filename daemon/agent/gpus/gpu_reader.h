// Reads what the node's GPUs do every few seconds, in a thread of its own: the driver may take its
// time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/agent/gpus/gpu_reading.h"
#include "daemon/topology/nvml.h"

namespace tierpilot::agent {

class GpuReader {
 public:
  struct Options {
    std::string library = "libnvidia-ml.so.1";
    int64_t period_ms = 5000;
  };
  // Of all that answer; with the reason where none can be asked.
  using Read = std::function<void(Result<std::vector<GpuReading>>)>;

  // `read` is called in the thread.
  GpuReader(Options options, Read read);
  // Returns within what the driver takes.
  ~GpuReader();
  GpuReader(const GpuReader&) = delete;

 private:
  void run();
  Result<std::vector<GpuReading>> read();

  const Options options_;
  const Read read_;
  std::optional<Nvml> nvml_;  // none: it did not open, or a device did not answer
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;   // with the mutex
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace tierpilot::agent
