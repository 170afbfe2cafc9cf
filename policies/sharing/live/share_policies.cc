#include "policies/sharing/live/fitted_policy.h"
#include "policies/sharing/live/given_policy.h"
#include "policies/sharing/live/published_policy.h"

namespace tierpilot::sharing {

namespace {

class AllPromises final : public Promises {
 public:
  Admission ask(const WaitingJob&) override { return {}; }
  void add(const WaitingJob&) override {}
};

}  // namespace

std::unique_ptr<Promises> all_promises() {
  return std::make_unique<AllPromises>();
}

const ModuleList<SharePolicyModule>& share_policies() {
  static const ModuleList<SharePolicyModule> kPolicies(
      "policy of shares",
      {{{"whole", "a whole unit for each job"},
        [](const Retained&) { return std::make_unique<GivenPolicy>(true); }},
       {{"best-fit", "what users ask for, where the least is left"},
        [](const Retained&) { return std::make_unique<GivenPolicy>(false); }},
       {{"share-published", "what is predicted, on the unit with the most free share"},
        [](const Retained&) { return std::make_unique<PublishedPolicy>(); }},
       {{"share", "what is needed to keep promises, and the rest by use"},
        [](const Retained& retained) { return std::make_unique<FittedPolicy>(retained); }}});
  return kPolicies;
}

Result<std::unique_ptr<SharePolicy>> make_share_policy(std::string_view name, Retained retained) {
  return share_policies().make(name, retained);
}

}  // namespace tierpilot::sharing
