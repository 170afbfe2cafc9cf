#include "policies/sharing/interference/turns.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::sharing {
namespace {

constexpr double kByLength = 0.25;
constexpr double kLeastLonger = 1e-3;

}  // namespace

double ln_longer(const TakesTurns& victim, const TakesTurns& neighbour, double alike) {
  const double longer =
      victim.part * neighbour.part + (1 - victim.part) * (1 - neighbour.part) + alike;
  const double ln = std::log(std::max(longer, kLeastLonger));
  if (!(victim.step_s > 0) || !(neighbour.step_s > 0)) return ln;
  const auto ln_on_gpu = [](const TakesTurns& job) {
    return std::log(job.part) + std::log(job.step_s);
  };
  return ln - kByLength * (ln_on_gpu(victim) - ln_on_gpu(neighbour));
}

double ln_kept_in_turns(const TakesTurns& victim, const TakesTurns& neighbour) {
  return -std::log1p(std::exp(ln_longer(victim, neighbour)));
}

}  // namespace tierpilot::sharing
