#include <fmt/format.h>

#include "policies/sharing/placement.h"
#include "policies/sharing/rivals.h"
#include "policies/sharing/share_scorer.h"

namespace tierpilot::sharing {

const std::vector<PlacementPolicy>& placement_policies() {
  static const std::vector<PlacementPolicy> kPolicies{
      {"whole", "whole units for whoever asks for a part of one"},
      {"best-fit", "user fractions, the node and unit where the least is left"},
      {"first-fit", "user fractions, the first node and unit"},
      {"most-free", "user fractions, the unit with the most free share"},
      {"packing", "units that are shared already, then idle ones of used nodes"},
      {"fgd", "fragmentation gradient descent"},
      {"share-published", "predicted shares, the unit with the most free share"},
      {"share", "least loss of what usually comes"}};
  return kPolicies;
}

Result<std::unique_ptr<Scorer>> make_scorer(std::string_view name,
                                            const std::vector<Request>& typical) {
  if (name == "whole") return std::make_unique<WholeUnits>();
  if (name == "best-fit") return std::make_unique<BestFit>();
  if (name == "first-fit") return std::make_unique<FirstFit>();
  if (name == "most-free" || name == "share-published") return std::make_unique<MostFree>();
  if (name == "packing") return std::make_unique<UnitPacking>();
  if (name == "fgd") return std::make_unique<FragmentationDescent>(typical);
  if (name == "share") return std::make_unique<ShareScorer>(typical);
  std::string known;
  for (const auto& policy : placement_policies())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", policy.name);
  return fail(ErrorCode::kNotFound,
              fmt::format("no placement policy '{}': there are {}", name, known));
}

}  // namespace tierpilot::sharing
