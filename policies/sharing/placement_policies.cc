#include "policies/sharing/placement.h"
#include "policies/sharing/rivals.h"
#include "policies/sharing/share_scorer.h"

namespace tierpilot::sharing {
namespace {

using Requests = std::vector<Request>;

template <class Policy>
std::unique_ptr<Scorer> plain(const Requests&) {
  return std::make_unique<Policy>();
}

template <class Policy>
std::unique_ptr<Scorer> by_typical(const Requests& typical) {
  return std::make_unique<Policy>(typical);
}

}  // namespace

const ModuleList<ScorerModule>& scorers() {
  static const ModuleList<ScorerModule> kScorers(
      "placement policy",
      {{{"whole", "whole units for whoever asks for a part of one"}, plain<WholeUnits>},
       {{"best-fit", "user fractions, the node and unit where the least is left"}, plain<BestFit>},
       {{"first-fit", "user fractions, the first node and unit"}, plain<FirstFit>},
       {{"most-free", "user fractions, the unit with the most free share"}, plain<MostFree>},
       {{"packing", "units that are shared already, then idle ones of used nodes"},
        plain<UnitPacking>},
       {{"fgd", "fragmentation gradient descent"}, by_typical<FragmentationDescent>},
       {{"share-published", "predicted shares, the unit with the most free share"},
        plain<MostFree>},
       {{"share", "least loss of what usually comes"}, by_typical<ShareScorer>}});
  return kScorers;
}

Result<std::unique_ptr<Scorer>> make_scorer(std::string_view name, const Requests& typical) {
  return scorers().make(name, typical);
}

}  // namespace tierpilot::sharing
