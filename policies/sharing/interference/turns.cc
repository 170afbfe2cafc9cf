#include "policies/sharing/interference/turns.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tierpilot::sharing {
namespace {

constexpr double kByMeeting = 0.75;  // on hosts of their own
constexpr double kByLength = 0.25;   // on a shared one
constexpr double kLeastLonger = 1e-3;

}  // namespace

double ln_kept_on_own_hosts(double victim_part, double neighbour_part) {
  const double meets = std::clamp(victim_part, 0.0, 1.0) * std::clamp(neighbour_part, 0.0, 1.0);
  return -std::log1p(std::pow(meets, kByMeeting));
}

double ln_longer_on_shared_host(const TakesTurns& victim, const TakesTurns& neighbour,
                                double alike) {
  const double longer =
      victim.part * neighbour.part + (1 - victim.part) * (1 - neighbour.part) + alike;
  const double ln = std::log(std::max(longer, kLeastLonger));
  if (!(victim.step_s > 0) || !(neighbour.step_s > 0)) return ln;
  const auto ln_on_gpu = [](const TakesTurns& job) {
    return std::log(job.part) + std::log(job.step_s);
  };
  return ln - kByLength * (ln_on_gpu(victim) - ln_on_gpu(neighbour));
}

double ln_kept_on_shared_host(const TakesTurns& victim, const TakesTurns& neighbour) {
  return -std::log1p(std::exp(ln_longer_on_shared_host(victim, neighbour)));
}

// Of a normal one the mean of what is below zero, of what is above zero nothing.
double ln_kept_beyond_half(double ln_kept, double off) {
  const double mean = ln_kept + std::numbers::ln2;
  const double at = mean / off;
  const double below = std::erfc(at / std::numbers::sqrt2) / 2;
  const double density = std::exp(-at * at / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return mean * below - off * density;
}

}  // namespace tierpilot::sharing
