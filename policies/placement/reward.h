// The reward of S1, from what was measured while a task's data was served.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "policies/interface/values.h"

namespace tierpilot {

struct RewardSettings {
  double utilisation_weight = 0.5;  // w in [0, 1]
  double penalty_floor = -0.5;  // beta in [-1, 0]: keeps a huge eviction from upsetting learning
};

struct ServiceMeasure {
  double utilisation = 0;        // of the engines, [0, 1]
  double service_ns = 0;         // from receiving the request until its data was served
  double reference_ns = 0;       // the local fast tier's own service time for as many pages
  uint64_t evicted_bytes = 0;    // that had to leave the node's fast tier for this task
  double evict_bytes_per_s = 0;  // measured eviction bandwidth; needed when bytes were evicted
};

// With 1/L = clamp(reference / service, 0, 1) and Rp = (evicted / bandwidth) / reference:
//   no eviction:   R = w U + (1 - w) 1/L
//   with eviction: R = w U + (1 - w) max(beta 1/L, 1/L - Rp)
// Reconstructed from the claims of the S1 publication (CN, 2023; its reward follows Sibyl, ISCA
// 2022); dividing both times by one reference is ours, because U has no unit either.
// Times that are not positive or finite, and evicted bytes without a bandwidth, are kInvalid.
Result<RewardParts> compute_reward(const ServiceMeasure& measure, const RewardSettings& settings);

}  // namespace tierpilot
