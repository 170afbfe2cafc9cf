#include "policies/quality/iteration_cost.h"

#include <cmath>

namespace tierpilot::quality {
namespace {

constexpr double kKept = 0.98;  // of the weight of earlier iterations, with each one
constexpr double kSurprise = 2;
constexpr int kSurprisesOfChange = 3;

bool usable(double value) {
  return std::isfinite(value) && value > 0 && value < 1e100;
}

}  // namespace

void IterationCost::add(double size, double cpu_s) {
  if (!usable(size) || !usable(cpu_s)) return;
  if (const auto expected = this->cpu_s(size)) {
    const bool surprising = cpu_s > kSurprise * *expected || kSurprise * cpu_s < *expected;
    surprises_ = surprising ? surprises_ + 1 : 0;
    if (surprising && surprises_ < kSurprisesOfChange) return;
    if (surprising) size_cost_ = size_size_ = surprises_ = 0;
  }
  size_cost_ = kKept * size_cost_ + size * cpu_s;
  size_size_ = kKept * size_size_ + size * size;
}

std::optional<double> IterationCost::cpu_s(double size) const {
  if (size_size_ == 0) return {};
  return size * size_cost_ / size_size_;
}

}  // namespace tierpilot::quality
