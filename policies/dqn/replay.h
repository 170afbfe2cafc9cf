// Experiences and the buffer they wait in. Not thread-safe: the training thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <unordered_set>
#include <vector>

#include "policies/features.h"

namespace tierpilot {

// (observation, action, reward, next observation). Neighbouring experiences share observations.
struct Experience {
  std::shared_ptr<const Observation> seen;
  std::shared_ptr<const Observation> next;
  uint32_t action = 0;  // slot
  double reward = 0;
};

class ReplayBuffer {
 public:
  explicit ReplayBuffer(size_t capacity) : capacity_(capacity) {}

  // Drops the oldest when full. False: an equal experience is in the buffer already.
  bool add(Experience experience);
  // `count` different entries at random (all, when there are fewer), removed if `remove`.
  std::vector<Experience> draw(size_t count, std::mt19937_64& generator, bool remove);

  size_t size() const { return entries_.size(); }
  size_t capacity() const { return capacity_; }
  // Oldest first.
  const std::vector<Experience>& entries() const { return entries_; }

 private:
  size_t capacity_;
  std::vector<Experience> entries_;
  // Equality by 64-bit fingerprint: a false duplicate costs one sample in 10^13.
  std::unordered_set<uint64_t> fingerprints_;
};

}  // namespace tierpilot
