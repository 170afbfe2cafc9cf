// One try at running one task: the same word in every program, in messages and on disk.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierpilot {

struct AttemptId {
  uint64_t task = 0;
  uint32_t attempt = 0;
  auto operator<=>(const AttemptId&) const = default;
};

// "17-2": names directories and owners.
std::string to_string(AttemptId id);
// The inverse; anything else, leading zeros included, is nullopt.
std::optional<AttemptId> parse_attempt(std::string_view text);

// One number for both, in the order of tasks and of their attempts; of a task's last 65,536.
inline constexpr unsigned kAttemptBits = 16;
constexpr uint64_t attempt_key(AttemptId id) {
  return id.task << kAttemptBits | (id.attempt & ((1u << kAttemptBits) - 1));
}
constexpr uint64_t first_attempt_key(uint64_t task) {
  return attempt_key({task, 0});
}
constexpr uint64_t last_attempt_key(uint64_t task) {
  return attempt_key({task, UINT32_MAX});
}

}  // namespace tierpilot
