#include "tools/lab/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "policies/dqn/dqn_policy.h"
#include "tools/cluster/program.h"

namespace tierpilot::lab {

PolicyMaker policy_maker(std::shared_ptr<const WeightsFile> weights) {
  std::shared_ptr<const DqnWeights> shared;
  if (weights) shared = std::shared_ptr<const DqnWeights>(weights, &weights->weights);
  return [weights, shared](const std::string& name,
                           uint64_t seed) -> Result<std::unique_ptr<Policy>> {
    PolicyContext context{.seed = seed};
    if (name == "dqn" && shared) {
      context.dqn.epsilon = 0;
      context.dqn.features = weights->features;
      context.dqn_weights = std::make_shared<Mailbox<DqnWeights>>();
      context.dqn_weights->put(shared);
      return make_policy(name, context);
    }
    for (const PolicyInfo& info : registered_policies())
      if (info.name == name && info.learns)
        return fail(ErrorCode::kUnavailable,
                    fmt::format("policy '{}' learns, and there are no weights for it here", name));
    return make_policy(name, context);
  };
}

Result<std::shared_ptr<const WeightsFile>> weights_for(const std::vector<std::string>& names,
                                                       const std::string& path) {
  if (std::find(names.begin(), names.end(), "dqn") == names.end())
    return std::shared_ptr<const WeightsFile>();
  std::filesystem::path file = path;
  if (path.empty()) {
    auto shipped = find_data_file("dqn.weights");
    if (!shipped) return tl::unexpected(shipped.error());
    file = *shipped;
  }
  auto loaded = load_weights(file);
  if (!loaded) return tl::unexpected(loaded.error());
  return std::make_shared<const WeightsFile>(std::move(*loaded));
}

Status check_policies(const std::vector<std::string>& names, const std::string& option,
                      const PolicyMaker& make) {
  const std::set<std::string> unique(names.begin(), names.end());
  if (unique.size() != names.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: a policy is named twice; each runs once", option));
  for (const auto& name : names)
    if (auto made = make(name, 1); !made) return tl::unexpected(made.error());
  return {};
}

}  // namespace tierpilot::lab
