#include "tests/dst/judge/swap_rooms.h"

#include <fmt/format.h>

#include <utility>

namespace tierpilot::dst {

uint64_t SwapRooms::given_of(const Node& node, const std::string& tier) {
  uint64_t bytes = 0;
  for (const auto& [attempt, parts] : node.given)
    if (const auto part = parts.find(tier); part != parts.end()) bytes += part->second;
  return bytes;
}

void SwapRooms::offered(int node, std::vector<SwapTierWords> tiers) {
  nodes_[node] = {std::move(tiers), {}};
}

void SwapRooms::given(int node, AttemptId attempt, uint64_t asked_bytes,
                      const std::vector<SwapTierWords>& parts) {
  auto& there = nodes_[node];
  uint64_t given_bytes = 0;
  for (const auto& part : parts) {
    there.given[attempt][part.name()] += part.bytes;
    given_bytes += part.bytes;
  }
  if (given_bytes != asked_bytes)
    violated_("over-room",
              fmt::format("task {} attempt {} asks for {} bytes of room for swapping and has {}",
                          attempt.task, attempt.attempt, asked_bytes, given_bytes));
  bool is_left = false;  // of a faster tier
  for (const auto& tier : there.tiers) {
    const uint64_t bytes = given_of(there, tier.name());
    if (bytes > tier.bytes)
      violated_("over-room", fmt::format("of {} of n{} {} bytes are given, and it offers {}",
                                         tier.name(), node + 1, bytes, tier.bytes));
    if (is_left && there.given[attempt].contains(tier.name()))
      violated_("over-room",
                fmt::format("task {} attempt {} is given room on {} of n{}, and of a faster tier "
                            "some is left",
                            attempt.task, attempt.attempt, tier.name(), node + 1));
    is_left = is_left || bytes < tier.bytes;
  }
}

void SwapRooms::ended(int node, AttemptId attempt) {
  nodes_[node].given.erase(attempt);
}

void SwapRooms::lacked(int node, AttemptId attempt, const std::string& why) {
  violated_("over-room", fmt::format("task {} attempt {} was given to n{}, which has too little "
                                     "room for swapping: {}",
                                     attempt.task, attempt.attempt, node + 1, why));
}

}  // namespace tierpilot::dst
