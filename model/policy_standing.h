// What a policy that learns may do, how the guard regards it, and who takes one decision.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tierpilot {

// Stores have the numbers of modes and standings.
enum class PolicyMode : uint8_t {
  kShadow,   // it is asked and written down, the heuristic decides
  kAdvise,   // it decides among what the heuristic finds about as good as its own choice
  kEnforce,  // it decides
};
inline constexpr int64_t kPolicyModes = 3;

enum class Standing : uint8_t { kTrusted, kDeposed, kProbation };
inline constexpr int64_t kStandings = 3;

enum class Arm : uint8_t {
  kPolicy,
  kControl,  // the heuristic, to compare
  kShadow,   // the heuristic; the policy is asked what it would have done
  kAlone,    // the heuristic; the policy is not asked
};

// String literals: "shadow", "trusted", "policy", ...
const char* policy_mode_name(PolicyMode mode);
const char* standing_name(Standing standing);
const char* arm_name(Arm arm);
std::optional<PolicyMode> parse_policy_mode(std::string_view text);
std::optional<Arm> parse_arm(std::string_view text);

}  // namespace tierpilot
