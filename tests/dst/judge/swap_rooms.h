// Room for swapping on nodes' tiers, as processes were given it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/swap_tier_words.h"
#include "coordinator/model.h"

namespace tierpilot::dst {

class SwapRooms {
 public:
  using Violated = std::function<void(const std::string& invariant, std::string what)>;
  explicit SwapRooms(Violated violated) : violated_(std::move(violated)) {}

  // A daemon begins, with these tiers from fast to slow; nothing of the one before it runs.
  void offered(int node, std::vector<SwapTierWords> tiers);
  // A process of the attempt begins there with these parts of the tiers.
  void given(int node, AttemptId attempt, uint64_t asked_bytes,
             const std::vector<SwapTierWords>& parts);
  // It is over.
  void ended(int node, AttemptId attempt);
  // It does not begin, as its daemon has too little.
  void lacked(int node, AttemptId attempt, const std::string& why);

 private:
  struct Node {
    std::vector<SwapTierWords> tiers;
    std::map<AttemptId, std::map<std::string, uint64_t>> given;  // bytes by tier
  };
  static uint64_t given_of(const Node& node, const std::string& tier);

  Violated violated_;
  std::map<int, Node> nodes_;
};

}  // namespace tierpilot::dst
