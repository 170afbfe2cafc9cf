// Policies for simulations, by name: the dqn with weights from a file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policies/dqn/weights.h"
#include "policies/registry.h"

namespace tierpilot::lab {

using PolicyMaker =
    std::function<Result<std::unique_ptr<Policy>>(const std::string& name, uint64_t seed)>;

// Makes the dqn with these weights, which it keeps: it decides and does not learn. Null: there are
// none, and to ask for a dqn is an error. Any thread may call it.
PolicyMaker policy_maker(std::shared_ptr<const WeightsFile> weights);

// The file, or the shipped one when `path` is empty. Null when no policy of `names` needs it.
Result<std::shared_ptr<const WeightsFile>> weights_for(const std::vector<std::string>& names,
                                                       const std::string& path);

// Each exists, can be made and is named once; `option` is for messages.
Status check_policies(const std::vector<std::string>& names, const std::string& option,
                      const PolicyMaker& make);

}  // namespace tierpilot::lab
