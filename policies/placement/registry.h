// Every placement policy there is, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/interface/policy.h"
#include "policies/learning/guard.h"
#include "policies/learning/learner.h"
#include "policies/learning/mailbox.h"
#include "policies/placement/dqn/settings.h"
#include "policies/placement/published/settings.h"

namespace tierpilot {

struct DqnWeights;
struct PublishedWeights;

struct PolicyInfo {
  std::string name;
  std::string summary;
  bool learns = false;
  JudgedBy judged =
      JudgedBy::kReward;  // by the guard of one that learns: what it learns to improve
  bool holds = false;     // it may keep tasks back, see Policy::holds()
};

struct PolicyContext {
  uint64_t seed = 1;
  DqnSettings dqn;
  PublishedSettings published;
  // Where learners leave weights for the policies that learn.
  std::shared_ptr<Mailbox<DqnWeights>> dqn_weights;
  std::shared_ptr<Mailbox<PublishedWeights>> published_weights;
  std::shared_ptr<const DqnWeights> start;  // of the dqn's learner; null: the estimate alone
};

const std::vector<PolicyInfo>& registered_policies();
// Null: there is none of the name.
const PolicyInfo* find_policy(std::string_view name);
// kNotFound lists the names there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const PolicyContext& context);
// The learner behind a policy that learns; writes to its mailbox in `context`, from the start.
// kNotFound: there is no such policy, or it does not learn.
Result<std::unique_ptr<Learner>> make_learner(std::string_view name, const PolicyContext& context,
                                              size_t pending_capacity);

}  // namespace tierpilot
