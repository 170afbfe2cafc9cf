// A step as it is seen where nothing is recomputed, and a link that it is planned for.
#pragma once

#include "policies/swap/learning/observed_step.h"
#include "policies/swap/machine/limits.h"

namespace tierpilot::swap {

inline constexpr int64_t kMiB = 1 << 20;

// Layers of equal size and time, with a backward pass the other way round.
inline ObservedStep chain_of(uint32_t layers, int64_t bytes = kMiB, int64_t time_ns = 1'000'000) {
  ObservedStep step;
  for (uint32_t i = 0; i < layers; ++i)
    step.saves.push_back(
        {.place = i + 1, .kind = i % 3, .bytes = bytes, .convolution_input = i % 2 == 0});
  for (uint32_t i = layers; i-- > 0;) step.uses.push_back(i);
  step.time_ns.assign(2 * layers + 1, time_ns);
  step.other_bytes.assign(2 * layers + 1, 10 * kMiB);
  return step;
}

// 1 MiB takes as long as a layer's computing.
inline Limits limits(int64_t budget) {
  return {.budget_bytes = budget, .recompute = false, .link = {.gb_per_s = 1.05}};
}

}  // namespace tierpilot::swap
