// Every placement policy there is, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/dqn/settings.h"
#include "policies/policy.h"

namespace tierpilot {

class WeightsMailbox;

struct PolicyInfo {
  std::string name;
  std::string summary;
  bool learns = false;
};

struct PolicyContext {
  uint64_t seed = 1;
  DqnSettings dqn;
  std::shared_ptr<WeightsMailbox> weights;  // needed by policies that learn
};

const std::vector<PolicyInfo>& registered_policies();
// kNotFound lists the names there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const PolicyContext& context);

}  // namespace tierpilot
