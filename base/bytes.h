// Sizes as people write them: "64MiB", "1.5GiB", "4096".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

inline constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

// Accepts B, KiB, MiB, GiB, TiB and their decimal kin KB, MB, GB, TB; no unit means bytes.
Result<uint64_t> parse_bytes(std::string_view text);
// "64.0 MiB"
std::string format_bytes(uint64_t bytes);

}  // namespace tierpilot
