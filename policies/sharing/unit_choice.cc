#include "policies/sharing/unit_choice.h"

#include <algorithm>

namespace tierpilot::sharing {
namespace {

template <class Before>
std::vector<uint32_t> chosen(const Node& node, const Request& request, Before before) {
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < node.units.size(); ++i)
    if (fits(node.units[i], request.share)) units.push_back(i);
  std::stable_sort(units.begin(), units.end(), [&](uint32_t a, uint32_t b) {
    return before(node.units[a].free_milli, node.units[b].free_milli);
  });
  units.resize(std::min<size_t>(units.size(), request.units));
  return units;
}

}  // namespace

std::vector<uint32_t> fullest_units(const Node& node, const Request& request) {
  return chosen(node, request, [](uint32_t a, uint32_t b) { return a < b; });
}

std::vector<uint32_t> freest_units(const Node& node, const Request& request) {
  return chosen(node, request, [](uint32_t a, uint32_t b) { return a > b; });
}

std::vector<uint32_t> first_units(const Node& node, const Request& request) {
  return chosen(node, request, [](uint32_t, uint32_t) { return false; });
}

}  // namespace tierpilot::sharing
