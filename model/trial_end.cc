#include "model/trial_end.h"

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, 3> kTrialEndNames{"none", "made", "not_made"};

}  // namespace

std::string_view trial_end_name(TrialEnd end) {
  return name_in(kTrialEndNames, end);
}

std::optional<TrialEnd> parse_trial_end(std::string_view text) {
  return parse_in<TrialEnd>(kTrialEndNames, text);
}

}  // namespace tierpilot
