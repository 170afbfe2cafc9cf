// Ranges as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace tierpilot::tierctl {

// "MIN:MAX", either may be left out (0), or one number for both; nothing where it is none of these.
std::optional<std::pair<uint32_t, uint32_t>> parse_range(std::string_view text);

}  // namespace tierpilot::tierctl
