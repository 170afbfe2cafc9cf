#include <fmt/format.h>

#include "policies/sharing/live/fitted_policy.h"
#include "policies/sharing/live/given_policy.h"
#include "policies/sharing/live/published_policy.h"

namespace tierpilot::sharing {

const std::vector<SharePolicyInfo>& share_policies() {
  static const std::vector<SharePolicyInfo> kPolicies{
      {"whole", "a whole unit for each job"},
      {"best-fit", "what users ask for, where the least is left"},
      {"share-published", "what is predicted, on the unit with the most free share"},
      {"share", "what is needed to keep promises, and the rest by use"}};
  return kPolicies;
}

Result<std::unique_ptr<SharePolicy>> make_share_policy(std::string_view name, Retained retained) {
  if (name == "whole") return std::make_unique<GivenPolicy>(true);
  if (name == "best-fit") return std::make_unique<GivenPolicy>(false);
  if (name == "share-published") return std::make_unique<PublishedPolicy>();
  if (name == "share") return std::make_unique<FittedPolicy>(std::move(retained));
  std::string known;
  for (const auto& policy : share_policies())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", policy.name);
  return fail(ErrorCode::kNotFound,
              fmt::format("no policy of shares '{}': there are {}", name, known));
}

}  // namespace tierpilot::sharing
