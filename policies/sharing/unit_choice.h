// Which units of a node a request takes.
#pragma once

#include <algorithm>
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
// all units that are not alike, of several units only the fullest. What is left is one object each
// time.
template <class Score>
Offer best_offer(const Node& node, const Request& request, Score score) {
  Node after = node;
  if (request.units != 1 || request.share.milli == kWholeUnit) {
    auto units = fullest_units(node, request);
    subtract(after, request, units);
    return {score(after), std::move(units)};
  }
  after.cpu_milli -= request.cpu_milli;
  after.memory_bytes -= request.memory_bytes;
  double best = 0;
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < node.units.size(); ++i) {
    const Unit& unit = node.units[i];
    const auto alike = [&](const Unit& other) { return other == unit; };
    const auto here = node.units.begin() + i;
    if (!fits(unit, request.share) || std::any_of(node.units.begin(), here, alike)) continue;
    after.units[i] = {unit.free_milli - request.share.milli,
                      unit.free_bytes - request.share.memory_bytes};
    const double here_score = score(after);
    after.units[i] = unit;
    if (!chosen.empty() && here_score <= best) continue;
    best = here_score;
    chosen.assign(1, i);
  }
  return {best, std::move(chosen)};
}

}  // namespace tierpilot::sharing
