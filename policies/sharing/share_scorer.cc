#include "policies/sharing/share_scorer.h"

#include <algorithm>
#include <cstdlib>

#include "policies/sharing/unit_choice.h"

namespace tierpilot::sharing {
namespace {
double P(const char* n, double d){const char* e=getenv(n); return e?atof(e):d;}
const double kA=P("KA",1.0), kB=P("KB",1.0);
}  // namespace

ShareScorer::ShareScorer(const std::vector<Request>& typical)
    : fragmentation_(typical_requests(typical, 1), Fragmentation::Host::kCpuAndMemory) {}

double ShareScorer::score(const Node& node, const Request& request,
                          const std::vector<uint32_t>& units, double before) const {
  Node after = node;
  subtract(after, request, units);
  const double grown = fragmentation_.milli(after) - before;
  return -grown - kA * static_cast<double>(after.free_milli()) / 1000. - kB*after.cpu_milli/12000.;
}

Offer ShareScorer::offer(const Node& node, const Request& request) const {
  const double before = fragmentation_.milli(node);
  if (request.units != 1) {
    auto units = fullest_units(node, request);
    const double total = score(node, request, units, before);
    return {total, std::move(units)};
  }
  std::optional<Offer> best;
  for (uint32_t i = 0; i < node.units.size(); ++i) {
    if (!fits(node.units[i], request.share)) continue;
    const auto alike = [&](const Unit& unit) {
      return unit.free_milli == node.units[i].free_milli &&
             unit.free_bytes == node.units[i].free_bytes;
    };
    if (std::any_of(node.units.begin(), node.units.begin() + i, alike)) continue;
    const double total = score(node, request, {i}, before);
    if (!best || total > best->score) best = Offer{total, {i}};
  }
  return *best;
}

}  // namespace tierpilot::sharing
