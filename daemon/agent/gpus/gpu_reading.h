// What a GPU does now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tierpilot::agent {

// What the driver does not tell is empty.
struct GpuReading {
  std::string gpu;  // UUID
  std::optional<int> temperature_c;
  std::optional<uint64_t> memory_used_bytes;
  std::optional<int> busy_percent;  // of the time lately in which anything computed on it
};

}  // namespace tierpilot::agent
