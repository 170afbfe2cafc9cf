#include "policies/sharing/rivals.h"

#include <algorithm>
#include <cmath>

#include "policies/sharing/unit_choice.h"

namespace tierpilot::sharing {
namespace {

constexpr double kPaperCoverage = 0.95;  // of typical_requests
// Weights of a core and a unit against each other: the sums over usual nodes are about equal.
constexpr double kCpuMilliPerUnit = 12'000;

double left(const Node& node, const Request& request) {
  const double cpu = node.cpu_milli - request.cpu_milli;
  const double milli = static_cast<double>(node.free_milli() - request.total_milli());
  return cpu / kCpuMilliPerUnit + milli / kWholeUnit;
}

bool is_idle(const Unit& unit) {
  return unit.free_milli == kWholeUnit;
}

}  // namespace

Offer WholeUnits::offer(const Node& node, const Request& request, double) const {
  return {-left(node, request), first_units(node, request)};
}

Request WholeUnits::given(const Request& request) const {
  Request whole = request;
  if (request.units > 0) whole.share.milli = kWholeUnit;
  return whole;
}

Offer BestFit::offer(const Node& node, const Request& request, double) const {
  return {-left(node, request), fullest_units(node, request)};
}

Offer FirstFit::offer(const Node& node, const Request& request, double) const {
  return {0, first_units(node, request)};
}

Offer MostFree::offer(const Node& node, const Request& request, double) const {
  auto units = freest_units(node, request);
  const double free = units.empty() ? node.cpu_milli : node.units[units.front()].free_milli;
  return {free, std::move(units)};
}

Offer UnitPacking::offer(const Node& node, const Request& request, double) const {
  const auto idle = std::count_if(node.units.begin(), node.units.end(), is_idle);
  const bool used = static_cast<size_t>(idle) < node.units.size();
  auto units = fullest_units(node, request);
  double rank = used ? 1 : 0;
  if (!units.empty() && !is_idle(node.units[units.front()])) rank = 2;
  // Within a rank the tightest: little left on the unit, few idle units beside.
  const double tight = rank == 2 ? 1 - node.units[units.front()].free_milli / (kWholeUnit + 1.0)
                                 : 1 - static_cast<double>(idle) / (kMostUnits + 1.0);
  return {rank + tight, std::move(units)};
}

FragmentationDescent::FragmentationDescent(const std::vector<Request>& typical)
    : fragmentation_(typical_requests(typical, kPaperCoverage)) {}

double FragmentationDescent::worth(const Node& node) const {
  return -fragmentation_.milli(node);
}

Offer FragmentationDescent::offer(const Node& node, const Request& request, double worth) const {
  return best_offer(node, request, [&](const Node& after) {
    const double less_fragmented = (-fragmentation_.milli(after) - worth) / kWholeUnit;
    return std::floor(100 / (1 + std::exp(-less_fragmented)));
  });
}

}  // namespace tierpilot::sharing
