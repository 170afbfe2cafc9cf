// What this process holds of private memory: its anonymous resident set, without what it maps of
// files or shares.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "swap/device/compute_device.h"

namespace tierpilot::swap {

class ProcessMemory : public DeviceMemory {
 public:
  ProcessMemory();
  // 0 where /proc does not tell.
  int64_t now() const override;
  // Of all pages. Where the kernel cannot set its mark back this is now().
  int64_t peak() const override;
  void reset_peak() override;
  void give_back() override;
  void give_back(int64_t bytes) override;

  // From here on the C library keeps what is freed, up to 32 MiB each, until give_back(): to take
  // memory from the kernel anew costs as much as to compute with it. Its pages are huge where the
  // kernel may, and large tensors' as tensor_memory.h has it.
  static void own_freed_memory();

 private:
  UniqueFd statm_, status_, clear_;
};

}  // namespace tierpilot::swap
