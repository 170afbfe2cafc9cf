#include "policies/gang/placement/job.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tierpilot::gang {

const std::vector<Network> kNetworks{{"language model", {0.61, 0.62, 0.77}},
                                     {"ResNet-18", {1, 0.98, 0.95}},
                                     {"ResNet-50", {1, 1, 1}}};

double speed_of(uint32_t network, uint32_t units, uint32_t nodes, uint32_t units_per_node) {
  const uint32_t least = (units + units_per_node - 1) / units_per_node;
  if (units < 2 || nodes <= least) return 1;
  const size_t row = std::min<size_t>(std::bit_width(units) - 2, 2);
  const double spread = kNetworks[network].spread_speed[row];
  // The measurements know one node and a node for each unit; between them the share of links that
  // leave a node counts.
  const double share = static_cast<double>(nodes - least) / static_cast<double>(units - least);
  return 1 / (1 + (1 / spread - 1) * share);
}

double checkpoint_interval_h(const Costs& costs, double failures_per_h) {
  constexpr double kLeastH = 1e-3;  // of checkpoints that cost nothing
  return std::max(std::sqrt(2 * costs.checkpoint_h / std::max(failures_per_h, 1e-9)), kLeastH);
}

double stretch_of(const Costs& costs, double failures_per_h) {
  const double interval_h = checkpoint_interval_h(costs, failures_per_h);
  return (1 + costs.checkpoint_h / interval_h) *
         (1 + failures_per_h * (costs.restart_h + interval_h / 2));
}

}  // namespace tierpilot::gang
