// Of the binary interface of nvml.h what each part that calls it needs.
#pragma once

namespace tierpilot::nvml {

using Return = int;
inline constexpr Return kSuccess = 0, kGpuIsLost = 15;
using Device = struct DeviceOpaque*;

struct Memory {
  unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

}  // namespace tierpilot::nvml
