// Of a large cluster only some units are looked at closely.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tierpilot::sharing {

inline constexpr size_t kMostLookedAt = 512;  // closely, of those that seem the best

struct UnitAt {
  size_t node = 0, unit = 0;
};

// Of all that `rank` says something of, which must be cheap and need not be right, those with the
// least, in their order.
template <class Nodes, class Rank>
std::vector<UnitAt> looked_at_closely(const Nodes& nodes, Rank rank) {
  using Ranked = std::pair<typename decltype(rank(nodes[0][0], size_t{0}))::value_type, UnitAt>;
  std::vector<Ranked> all;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t u = 0; u < nodes[n].size(); ++u)
      if (const auto ranked = rank(nodes[n][u], n)) all.push_back({*ranked, {n, u}});
  if (all.size() > kMostLookedAt) {
    const auto end = all.begin() + static_cast<ptrdiff_t>(kMostLookedAt);
    std::nth_element(all.begin(), end, all.end(),
                     [](const Ranked& a, const Ranked& b) { return a.first < b.first; });
    all.resize(kMostLookedAt);
    std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
      return std::pair(a.second.node, a.second.unit) < std::pair(b.second.node, b.second.unit);
    });
  }
  std::vector<UnitAt> chosen;
  for (const auto& each : all) chosen.push_back(each.second);
  return chosen;
}

}  // namespace tierpilot::sharing
