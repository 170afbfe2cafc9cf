// NVML, the NVIDIA driver's management library, opened at run time: machines without it need
// nothing installed, and building needs no CUDA headers. Only the calls in use are declared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/topology/topology.h"

namespace tierpilot {

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

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace tierpilot
