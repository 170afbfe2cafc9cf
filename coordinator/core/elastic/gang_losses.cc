#include "coordinator/core/elastic/gang_losses.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace tierpilot {
namespace {

bool is_usable(const Figure& figure) {
  return figure.value && std::isfinite(*figure.value);
}

// Null: it did not say such a measure. An empty name: its loss.
const Figure* figure_of(const JobPoint& point, const std::string& name) {
  if (name.empty()) return &point.loss;
  const auto found = std::find_if(point.measures.begin(), point.measures.end(),
                                  [&](const auto& measure) { return measure.first == name; });
  return found == point.measures.end() ? nullptr : &found->second;
}

// Of those that said it; `own` stays where nobody did.
void take_mean(std::span<const JobPoint* const> points, const std::string& name, Figure& own) {
  const bool by_samples = std::all_of(points.begin(), points.end(),
                                      [](const JobPoint* point) { return point->samples > 0; });
  double sum = 0, weights = 0;
  for (const auto* point : points) {
    const auto* figure = figure_of(*point, name);
    if (!figure || !is_usable(*figure)) continue;
    const double weight = by_samples ? static_cast<double>(point->samples) : 1;
    sum += weight * *figure->value;
    weights += weight;
  }
  // Of the largest numbers the sum is none.
  if (weights > 0 && std::isfinite(sum)) own = {sum / weights, ""};
}

}  // namespace

void GangLosses::merge(uint64_t gang, uint32_t rank, JobPoint& point) {
  auto& heard = gangs_[gang];
  if (point.attempt < heard.attempt) return;
  if (point.attempt > heard.attempt) heard = {.attempt = point.attempt, .ranks = {}};
  if (rank == 0) ++heard.reports;
  heard.ranks[rank] = {point, heard.reports};
  if (rank != 0) return;
  std::erase_if(heard.ranks,
                [&](const auto& item) { return heard.reports - item.second.at > kSilentFor; });
  if (heard.ranks.size() < 2) return;
  std::vector<const JobPoint*> points;
  for (const auto& [number, each] : heard.ranks)
    if (each.point.says_something()) points.push_back(&each.point);
  take_mean(points, "", point.loss);
  for (auto& [name, figure] : point.measures) take_mean(points, name, figure);
}

}  // namespace tierpilot
