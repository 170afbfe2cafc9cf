// NVML, the NVIDIA driver's management library, opened at run time: machines without it need
// nothing installed, and building needs no CUDA headers. Only the calls in use are declared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/topology/topology.h"

namespace tierpilot {

// A process that computes on a GPU.
struct GpuProcess {
  uint32_t pid = 0;
  std::optional<uint64_t> memory_bytes;  // of the GPU's
  std::optional<int> sm_percent;         // of the time in which it computed, lately; of all SMs
  bool mps = false;                      // through CUDA MPS
};

// What a GPU does now; what it or the driver does not tell is empty.
struct GpuUse {
  int index = 0;
  std::optional<int> temperature_c;
  std::optional<double> power_w;
  std::vector<GpuProcess> processes;  // the one with the most memory first
  std::string processes_unavailable;  // the reason, where they could not be asked for
};

// That a process computed so much of the time until then, of all SMs that it may use.
struct GpuSample {
  uint32_t pid = 0;
  uint64_t at_us = 0;  // of the driver's clock
  int sm_percent = 0;
};

// Initialised from open() to destruction; one thread at a time.
class Nvml {
 public:
  // kUnavailable when the library, one of its functions, or the driver is not there.
  static Result<Nvml> open(const std::string& library);
  Nvml(Nvml&&) noexcept;
  ~Nvml();

  // Every GPU that answers; what one does not support is an empty optional. Those that fail
  // entirely are named in `warnings`. Fills all but numa_node.
  Result<std::vector<Gpu>> gpus(std::vector<std::string>& warnings) const;
  // Of the GPU with that index; kUnavailable where it does not answer.
  Result<GpuUse> use(int index) const;
  // The driver knows it and says that it cannot reach it any more.
  bool is_lost(int index) const;
  // Those that the driver took after `since_us`, at most 4096; kUnavailable where it takes none.
  Result<std::vector<GpuSample>> samples(int index, uint64_t since_us) const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace tierpilot
