// What a Scope costs a libtorch program for each saved tensor and its way back, where nothing
// leaves; rounds with and without in turn, as machines are busy, and the best of each.
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "swap/libtorch/tierpilot_swap_torch.h"

namespace {

constexpr int kTensors = 300, kRounds = 40;

struct Costs {
  double saved_us = 1e9, back_us = 1e9;

  void measure(const std::optional<tierpilot::swap::ScopeSettings>& settings) {
    const auto now = [] { return std::chrono::steady_clock::now(); };
    using Microseconds = std::chrono::duration<double, std::micro>;
    const auto x = torch::full({1 << 14}, 1e-3, torch::requires_grad());  // 64 KiB: the least
    const auto begin = now();
    auto y = x;
    {
      std::optional<tierpilot::swap::Scope> scope;
      if (settings) scope.emplace(*settings);
      for (int i = 0; i < kTensors; ++i) y = y.sigmoid();
    }
    const auto middle = now();
    y.sum().backward();
    saved_us = std::min(saved_us, Microseconds(middle - begin).count() / kTensors);
    back_us = std::min(back_us, Microseconds(now() - middle).count() / kTensors);
  }
};

}  // namespace

int main() {
  at::set_num_threads(1);
  const tierpilot::swap::ScopeSettings settings{
      .budget = "1TiB", .policy = "none", .tiers = "memory=64MiB"};
  Costs plain, hooked;
  for (int round = 0; round < kRounds; ++round) {
    plain.measure(std::nullopt);
    hooked.measure(settings);
  }
  std::printf("SAVED us  BACK us\n%-8.2f  %.2f\n", hooked.saved_us - plain.saved_us,
              hooked.back_us - plain.back_us);
}
