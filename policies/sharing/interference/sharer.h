// What is known of a job on a shared unit that its neighbours may slow, and that may slow them.
#pragma once

#include <cstdint>
#include <string>

namespace tierpilot::sharing {

enum class UnitKind : uint8_t { kCores, kGpu };

struct Sharer {
  std::string name;  // jobs of a name are alike; empty: of this one nothing is learned
  UnitKind on = UnitKind::kCores;
  // Alone, as measured or else predicted; 0: not known.
  double milli = 0;            // of the unit's compute that it uses; of a GPU, of the time
  double memory_bytes = 0;     // that it has resident
  double traffic_bytes_s = 0;  // tensors that it reads and writes, per second of compute
};

}  // namespace tierpilot::sharing
