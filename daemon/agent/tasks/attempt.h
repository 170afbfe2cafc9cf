// One try at running one task on this node.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierpilot::agent {

struct AttemptId {
  uint64_t task = 0;
  uint32_t attempt = 0;
  auto operator<=>(const AttemptId&) const = default;
};

// "17-2": names directories and owners.
inline std::string to_string(AttemptId id) {
  return fmt::format("{}-{}", id.task, id.attempt);
}
// The inverse; anything else, leading zeros included, is nullopt.
std::optional<AttemptId> parse_attempt(std::string_view text);

}  // namespace tierpilot::agent
