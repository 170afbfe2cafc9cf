// Room on the node's tiers for tensors that programs swap out: which attempt has how much of which.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/swap_tier_words.h"
#include "daemon/agent/node/model.h"
#include "daemon/agent/tasks/remover.h"

namespace tierpilot::agent {

// What an attempt was given.
struct SwapGrant {
  std::vector<SwapTierWords> tiers;  // fast to slow; a directory is its own folder
  uint64_t memory_bytes() const;     // of them in memory
  std::vector<std::string> folders() const;
};

// Owned by the event loop's thread.
class SwapRoom {
 public:
  // Fast to slow. `node` names this daemon's folder in each directory.
  SwapRoom(std::vector<SwapTierWords> tiers, const std::string& node);

  // The daemon's own folders in the directories.
  std::vector<std::filesystem::path> folders() const;

  // Takes the fastest that is left, of as many tiers as it needs, and makes the attempt's folders.
  // kExhausted: there is too little, and nothing is taken.
  Result<SwapGrant> take(AttemptId attempt, uint64_t bytes);
  // Its processes are gone.
  void give_back(AttemptId attempt);
  // With what is in them, which has to be the daemon's by now, and goes on another thread.
  void remove_folders(AttemptId attempt);

  uint64_t offered_bytes() const;
  uint64_t given_bytes() const;
  std::vector<MetricValue> metrics() const;

 private:
  struct Tier {
    SwapTierWords words;
    std::filesystem::path folder;  // of this daemon; empty: memory
    uint64_t left_bytes = 0;
  };
  using Part = std::pair<size_t, uint64_t>;  // of the tier so many bytes

  std::vector<Tier> tiers_;
  std::map<AttemptId, std::vector<Part>> given_;
  std::map<AttemptId, std::vector<std::string>> folders_;
  std::unique_ptr<Remover> remover_ = std::make_unique<Remover>();
};

// What tells the attempt's program where it may swap to, and within which memory.
std::vector<std::pair<std::string, std::string>> swap_environment(const Assignment& assignment,
                                                                  const SwapGrant& grant);

}  // namespace tierpilot::agent
