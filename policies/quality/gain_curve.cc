#include "policies/quality/gain_curve.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::quality {
namespace {

struct Knot {
  double cores, gain;
};

// Cores at which the prediction is asked for: doubling, from an eighth of a core.
std::vector<Knot> knots_of(const JobState& job, const GainOptions& options) {
  std::vector<Knot> knots{{0, 0}};
  for (double cores = 0.125; cores < job.max_cores; cores *= 2) knots.push_back({cores, 0});
  knots.push_back({job.max_cores, 0});
  for (auto& knot : knots)
    if (knot.cores > 0)
      knot.gain =
          std::max(predicted_gain(job, options.horizon_s, knot.cores, options.optimism), 0.0);
  return knots;
}

// The upper hull (Andrew's monotone chain).
std::vector<Knot> concave_majorant(const std::vector<Knot>& knots) {
  std::vector<Knot> hull;
  for (const auto& knot : knots) {
    while (hull.size() >= 2) {
      const Knot &a = hull[hull.size() - 2], &b = hull.back();
      if ((b.gain - a.gain) * (knot.cores - a.cores) > (knot.gain - a.gain) * (b.cores - a.cores))
        break;
      hull.pop_back();
    }
    hull.push_back(knot);
  }
  return hull;
}

}  // namespace

double predicted_gain(const JobState& job, double seconds, double cores, double optimism) {
  if (!job.predictor || job.largest_change <= 0) return 0;
  const double ahead = iterations_in(job, seconds, cores);
  const auto now = job.predictor->at(job.iterations);
  const auto then = job.predictor->at(job.iterations + ahead);
  if (!now || !then || ahead <= 0) return 0;
  const double doubt = (then->loss - then->low) - (now->loss - now->low);
  const double gain = now->loss - then->loss + optimism * std::max(doubt, 0.0);
  return std::isfinite(gain) ? job.weight * gain / job.largest_change : 0;
}

std::vector<Segment> gain_segments(const JobState& job, size_t number, const GainOptions& options) {
  std::vector<Segment> segments;
  const auto hull = concave_majorant(knots_of(job, options));
  for (size_t i = 1; i < hull.size(); ++i) {
    const double width = hull[i].cores - hull[i - 1].cores;
    const double gain = (hull[i].gain - hull[i - 1].gain) / width;
    if (gain <= 0) break;
    const double split = std::clamp(job.cores, hull[i - 1].cores, hull[i].cores);
    if (split > hull[i - 1].cores)
      segments.push_back({number, hull[i - 1].cores, split, gain * (1 + options.held_bonus)});
    if (split < hull[i].cores) segments.push_back({number, split, hull[i].cores, gain});
  }
  return segments;
}

}  // namespace tierpilot::quality
