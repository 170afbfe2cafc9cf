// Checkpoints are datasets whose names tell whose they are: checkpoint.TASK.ATTEMPT.ITERATION.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierpilot {

inline constexpr std::string_view kCheckpointPrefix = "checkpoint.";

// In the order of their making.
struct CheckpointName {
  uint64_t task = 0;  // of a gang, the gang
  uint32_t attempt = 0;
  uint64_t iteration = 0;
  auto operator<=>(const CheckpointName&) const = default;
};

std::string to_string(const CheckpointName& name);
// nullopt: it is no checkpoint's.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view dataset);

}  // namespace tierpilot
