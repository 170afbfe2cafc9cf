// What a job keeps of its speed beside one neighbour, beyond what its smaller share takes: an
// estimate whose logarithm is normal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tierpilot::sharing {

// What an estimate rests on, the least first.
enum class KeptBy : uint8_t { kPrior, kOwnEffects, kPair };

struct Kept {
  double ln = 0;        // of the middle one of what is thought possible
  double variance = 0;  // of ln
  KeptBy by = KeptBy::kPrior;
  uint32_t measured = 0;  // times: the pair, or where it never was, jobs of the two names

  // Nobody is taken to run faster for a neighbour.
  double part() const { return std::exp(std::min(0.0, ln)); }
  // As much or more in 95 of 100 cases.
  double lower() const { return lower_beside(1); }
  // Where a time is reckoned by something else, too, of which 95 of 100 stay below `upper` times
  // what is predicted: by so much less, that 95 of 100 times are kept in all. Both are not far off
  // at once.
  double lower_beside(double upper) const {
    constexpr double kOneSided95 = 1.645;
    const double other = std::log(std::max(1.0, upper));
    const double margin = std::hypot(kOneSided95 * std::sqrt(variance), other) - other;
    return std::exp(std::min(0.0, ln - margin));
  }
};

// Of several neighbours at once: the product. Their errors are taken for independent.
inline Kept operator*(const Kept& one, const Kept& other) {
  return {std::min(0.0, one.ln) + std::min(0.0, other.ln), one.variance + other.variance,
          std::min(one.by, other.by), std::min(one.measured, other.measured)};
}

}  // namespace tierpilot::sharing
