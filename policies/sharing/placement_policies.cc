#include "policies/sharing/chosen_scorer.h"
#include "policies/sharing/placement.h"
#include "policies/sharing/rivals.h"

namespace tierpilot::sharing {
namespace {

template <class Policy>
std::unique_ptr<Scorer> plain(const Usual&) {
  return std::make_unique<Policy>();
}

template <class Policy>
std::unique_ptr<Scorer> by_typical(const Usual& usual) {
  return std::make_unique<Policy>(usual.requests);
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
       {{"share", "least loss of what usually comes, or what fills such a cluster better"},
        choose_scorer}});
  return kScorers;
}

Result<std::unique_ptr<Scorer>> make_scorer(std::string_view name, const Usual& usual) {
  return scorers().make(name, usual);
}

}  // namespace tierpilot::sharing
