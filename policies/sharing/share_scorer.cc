#include "policies/sharing/share_scorer.h"

#include <optional>

#include "policies/sharing/unit_choice.h"

namespace tierpilot::sharing {
namespace {

// A thousandth of a unit for each unit that is left free, and for each twelve cores.
constexpr double kPerFreeMilli = 1.0 / kWholeUnit;
constexpr double kPerFreeCpuMilli = 1.0 / 12'000;

}  // namespace

ShareScorer::ShareScorer(const std::vector<Request>& typical)
    : usable_(representative(typical_requests(typical, 1))) {}

double ShareScorer::worth(const Node& node) const {
  return usable_.milli(node);
}

Offer ShareScorer::offer(const Node& node, const Request& request, double worth) const {
  std::optional<UsableShare::OnHost> on_host;
  return best_offer(node, request, [&](const Node& after) {
    if (!on_host) on_host.emplace(usable_, after);
    return on_host->milli(after.units) - worth -
           kPerFreeMilli * static_cast<double>(after.free_milli()) -
           kPerFreeCpuMilli * after.cpu_milli;
  });
}

}  // namespace tierpilot::sharing
