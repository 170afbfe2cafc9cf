#include "policies/sharing/live/refusal.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace tierpilot::sharing {

std::string too_small(const LiveUnit& unit, const Share& needed) {
  const auto free = unit.free();
  if (free.milli < needed.milli)
    return fmt::format("{} thousandths are free, {} needed", free.milli, needed.milli);
  if (free.memory_bytes < needed.memory_bytes)
    return fmt::format("{} of its memory are free, {} needed", format_bytes(free.memory_bytes),
                       format_bytes(needed.memory_bytes));
  return {};
}

}  // namespace tierpilot::sharing
