// What became of a promise that was on trial; see ShareSpec.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tierpilot {

enum class TrialEnd : uint8_t { kNone, kMade, kNotMade };

// "none", "made", "not_made"; a string literal.
std::string_view trial_end_name(TrialEnd end);
std::optional<TrialEnd> parse_trial_end(std::string_view text);

}  // namespace tierpilot
