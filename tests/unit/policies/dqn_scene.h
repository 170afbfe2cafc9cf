// Views drawn at random, and weights, for the tests of the dqn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "policies/interface/values.h"
#include "policies/placement/dqn/weights.h"

namespace tierpilot {

inline constexpr size_t kAll = 1 << 20;  // tokens
inline constexpr double kMB = 1e6;

inline View random_view(size_t nodes, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator);
  };
  View view;
  const auto data = static_cast<uint64_t>(draw(1, 200) * kMB);
  view.task = {.operations = draw(1e7, 1e10), .data_bytes = data, .writes = draw(0, 1) < 0.2};
  for (size_t i = 0; i < nodes; ++i) {
    NodeState node{.slot = static_cast<uint32_t>(i), .candidate = draw(0, 1) < 0.9, .units = 4};
    node.assigned = static_cast<uint32_t>(draw(0, 8));
    node.running = std::min(node.assigned, node.units);
    node.fast_budget_bytes = 256 << 20;
    node.free_fast_bytes = static_cast<uint64_t>(draw(0, 256) * kMB);
    node.held_fast_bytes = draw(0, 1) < 0.3 ? data : 0;
    node.held_slow_bytes = draw(0, 1) < 0.3 ? data - node.held_fast_bytes : 0;
    node.assigned_operations = node.assigned * draw(1e7, 1e10);
    node.rates = {draw(5e8, 4e9), 8e9, draw(5e8, 3e9), draw(5e8, 3e9), draw(1e8, 1e9)};
    view.nodes.push_back(node);
  }
  view.nodes[0].candidate = true;
  return view;
}

inline std::vector<float> random_weights(uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> draw(0, 0.15F);
  std::vector<float> weights(TokenNet::weight_count());
  for (float& weight : weights) weight = draw(generator);
  return weights;
}

inline std::shared_ptr<DqnWeights> some_weights(uint64_t seed) {
  auto weights = std::make_shared<DqnWeights>();
  EXPECT_TRUE(weights->own.set_weights(random_weights(seed)));
  const auto others = random_weights(seed + 1);
  std::copy_n(others.begin(), weights->others.size(), weights->others.begin());
  return weights;
}

}  // namespace tierpilot
