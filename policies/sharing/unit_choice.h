// Which units of a node a request takes.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

// `request.units` units that fit, those with the least (or most) free share first, of equals the
// first; fewer where no more fit.
std::vector<uint32_t> fullest_units(const Node& node, const Request& request);
std::vector<uint32_t> freest_units(const Node& node, const Request& request);
// In order of their numbers.
std::vector<uint32_t> first_units(const Node& node, const Request& request);

// The units after which `score(Node)` of what is left is greatest, of equals the first. Tried are
// all units that are not alike, of several units only the fullest.
template <class Score>
Offer best_offer(const Node& node, const Request& request, Score score) {
  const auto tried = [&](std::vector<uint32_t> units) {
    Node after = node;
    subtract(after, request, units);
    return Offer{score(after), std::move(units)};
  };
  if (request.units != 1 || request.share.milli == kWholeUnit)
    return tried(fullest_units(node, request));
  std::optional<Offer> best;
  for (uint32_t i = 0; i < node.units.size(); ++i) {
    const auto alike = [&](const Unit& unit) { return unit == node.units[i]; };
    const auto here = node.units.begin() + i;
    if (!fits(*here, request.share) || std::any_of(node.units.begin(), here, alike)) continue;
    auto offer = tried({i});
    if (!best || offer.score > best->score) best = std::move(offer);
  }
  return best.value_or(Offer{});
}

}  // namespace tierpilot::sharing
