#include "model/policy_standing.h"

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, kPolicyModes> kModes{"shadow", "advise", "enforce"};
constexpr std::array<std::string_view, kStandings> kStandingNames{"trusted", "deposed",
                                                                  "probation"};
constexpr std::array<std::string_view, 4> kArms{"policy", "control", "shadow", "alone"};

}  // namespace

const char* policy_mode_name(PolicyMode mode) {
  return name_in(kModes, mode).data();
}

const char* standing_name(Standing standing) {
  return name_in(kStandingNames, standing).data();
}

const char* arm_name(Arm arm) {
  return name_in(kArms, arm).data();
}

std::optional<PolicyMode> parse_policy_mode(std::string_view text) {
  return parse_in<PolicyMode>(kModes, text);
}

std::optional<Arm> parse_arm(std::string_view text) {
  return parse_in<Arm>(kArms, text);
}

}  // namespace tierpilot
