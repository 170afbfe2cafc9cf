#include "policies/sharing/published.h"

#include <algorithm>

namespace tierpilot::sharing {
namespace {

std::optional<uint32_t> need_of(const UtilisationSet& need, const PublishedUnit& unit) {
  const auto found = need.find(unit.type);
  if (found == need.end() || found->second > kWholeUnit) return std::nullopt;
  return found->second;
}

// The unit with the most of what `has` counts, if that covers the task.
template <class Has>
std::optional<PublishedPlace> most(const std::vector<PublishedNode>& nodes,
                                   const UtilisationSet& need, Has has) {
  std::optional<PublishedPlace> best;
  uint32_t most = 0;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t u = 0; u < nodes[n].size(); ++u) {
      const auto& unit = nodes[n][u];
      const auto milli = need_of(need, unit);
      if (!milli || has(unit) < *milli || (best && has(unit) <= most)) continue;
      most = has(unit);
      best = PublishedPlace{n, u, *milli, *milli - std::min(*milli, unit.free_milli)};
    }
  return best;
}

bool misses(double elapsed_s, double remaining_s, double promised_s) {
  return elapsed_s + remaining_s > promised_s;
}

}  // namespace

std::optional<PublishedPlace> place_published(const std::vector<PublishedNode>& nodes,
                                              const UtilisationSet& need, JobClass job_class) {
  const auto free = [](const PublishedUnit& unit) { return unit.free_milli; };
  if (auto place = most(nodes, need, free)) return place;
  if (job_class != JobClass::kLatencySensitive) return std::nullopt;
  return most(nodes, need,
              [](const PublishedUnit& unit) { return unit.free_milli + unit.best_effort_milli; });
}

std::optional<size_t> unit_published(const PublishedNode& node, const UtilisationSet& need,
                                     const std::unordered_map<std::string, double>& run_s,
                                     JobClass job_class) {
  if (job_class == JobClass::kLatencySensitive) {
    const auto place =
        most({node}, need, [](const PublishedUnit& unit) { return unit.free_milli; });
    return place ? std::optional(place->unit) : std::nullopt;
  }
  std::optional<size_t> best;
  double shortest = 0;
  for (size_t u = 0; u < node.size(); ++u) {
    const auto milli = need_of(need, node[u]);
    const auto run = run_s.find(node[u].type);
    if (!milli || node[u].free_milli < *milli || run == run_s.end()) continue;
    if (best && run->second >= shortest) continue;
    shortest = run->second;
    best = u;
  }
  return best;
}

uint32_t grown_published(uint32_t milli, double elapsed_s, double remaining_s, double promised_s) {
  if (!misses(elapsed_s, remaining_s, promised_s)) return milli;
  return std::min(milli + kGrowthStepMilli, kWholeUnit);
}

bool pauses_published(uint32_t milli, uint32_t used_milli, double elapsed_s, double remaining_s,
                      double promised_s) {
  return used_milli > milli && !misses(elapsed_s, remaining_s, promised_s);
}

}  // namespace tierpilot::sharing
