#include "policies/quality/width_choice.h"

#include <algorithm>
#include <vector>

#include "policies/quality/gain_curve.h"

namespace tierpilot::quality {
namespace {

constexpr double kAboutAsMuch = 0.98;

}  // namespace

WidthChoice choose_width(const JobState& job, uint32_t ranks, uint32_t most, double restart_s,
                         const WidthSettings& settings) {
  WidthChoice choice{.ranks = ranks};
  choice.gain = choice.gain_as_now = predicted_gain(job, settings.horizon_s, job.cores, 0);
  const double seconds = settings.horizon_s - restart_s;
  if (ranks == 0 || seconds <= 0) return choice;
  const auto gain_on = [&](uint32_t wider) {
    return predicted_gain(job, seconds, job.cores * wider / ranks, 0);
  };
  std::vector<double> gains;
  for (uint32_t wider = ranks + 1; wider <= most; ++wider) gains.push_back(gain_on(wider));
  if (gains.empty()) return choice;
  const double best = *std::max_element(gains.begin(), gains.end());
  const double least =
      std::max(settings.worth_it * choice.gain_as_now, choice.gain_as_now + settings.least_more);
  const auto enough = std::find_if(gains.begin(), gains.end(), [&](double gain) {
    return gain >= kAboutAsMuch * best && gain >= least;
  });
  if (enough == gains.end()) return choice;
  choice.ranks = ranks + 1 + static_cast<uint32_t>(enough - gains.begin());
  choice.gain = *enough;
  return choice;
}

}  // namespace tierpilot::quality
