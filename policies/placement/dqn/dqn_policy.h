// Placement by the dqn: the candidate whose value is the largest, epsilon-greedy.
#pragma once

#include <memory>
#include <vector>

#include "policies/interface/policy.h"
#include "policies/learning/mailbox.h"
#include "policies/placement/dqn/settings.h"
#include "policies/placement/dqn/weights.h"

namespace tierpilot {

// The values of a view's tokens, in the unit of TokenSet::prior. Belongs to one thread.
class TokenValuer {
 public:
  // Valid until the next call.
  const std::vector<float>& values(const DqnWeights& weights, const TokenSet& tokens);

 private:
  std::vector<float> values_;
  TokenNet::Scratch scratch_;
};

// The policy is the reader of `weights`. Where none have arrived, or a candidate's value is not
// finite, fallback_decide chooses and the reason says so. Decision::q is in seconds, negated.
std::unique_ptr<Policy> make_dqn_policy(const DqnSettings& settings, uint64_t seed,
                                        std::shared_ptr<Mailbox<DqnWeights>> weights);

}  // namespace tierpilot
