// Experiences and the buffer they wait in. Not thread-safe: the training thread owns it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tierpilot {

// (what was seen, action, reward, what was seen next). Neighbouring experiences share sights.
template <class Sight>
struct Experience {
  std::shared_ptr<const Sight> seen;
  std::shared_ptr<const Sight> next;
  uint32_t action = 0;
  double reward = 0;
};

inline void mix_hash(uint64_t& hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15 + (hash << 6) + (hash >> 2);
}

// `uint64_t hash_of(const Sight&)` must be declared beside the Sight.
template <class Sight>
class ReplayBuffer {
 public:
  using Entry = Experience<Sight>;

  explicit ReplayBuffer(size_t capacity) : capacity_(capacity) {}

  // Drops the oldest when full. False: an equal experience is in the buffer already.
  bool add(Entry experience) {
    const uint64_t print = fingerprint(experience);
    if (!known_.insert(print).second) return false;
    if (entries_.size() == capacity_) {
      known_.erase(prints_.front());
      entries_.pop_front();
      prints_.pop_front();
    }
    entries_.push_back(std::move(experience));
    prints_.push_back(print);
    return true;
  }

  // `count` different entries at random (all, when there are fewer), removed if `remove`.
  std::vector<Entry> draw(size_t count, std::mt19937_64& generator, bool remove) {
    std::vector<Entry> drawn;
    std::vector<size_t> chosen = choose(std::min(count, entries_.size()), generator);
    drawn.reserve(chosen.size());
    for (size_t i : chosen) drawn.push_back(entries_[i]);
    if (!remove) return drawn;
    std::sort(chosen.begin(), chosen.end(), std::greater<>());
    for (size_t i : chosen) {
      known_.erase(prints_[i]);
      prints_.erase(prints_.begin() + static_cast<std::ptrdiff_t>(i));
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return drawn;
  }

  size_t size() const { return entries_.size(); }
  size_t capacity() const { return capacity_; }
  // Oldest first.
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  static uint64_t fingerprint(const Entry& experience) {
    uint64_t hash = hash_of(*experience.seen);
    if (experience.next) mix_hash(hash, hash_of(*experience.next));
    mix_hash(hash, experience.action);
    mix_hash(hash, std::hash<double>{}(experience.reward));
    return hash;
  }

  // Floyd's sampling without replacement (Bentley and Floyd, CACM 1987): no walk over the buffer.
  std::vector<size_t> choose(size_t count, std::mt19937_64& generator) const {
    std::vector<size_t> chosen;
    std::unordered_set<size_t> taken;
    for (size_t last = entries_.size() - count; last < entries_.size(); ++last) {
      const size_t pick = std::uniform_int_distribution<size_t>(0, last)(generator);
      chosen.push_back(taken.insert(pick).second ? pick : last);
      taken.insert(chosen.back());
    }
    return chosen;
  }

  size_t capacity_;
  std::deque<Entry> entries_;
  // Equality by 64-bit fingerprint: a false duplicate costs one sample in 10^13.
  std::deque<uint64_t> prints_;
  std::unordered_set<uint64_t> known_;
};

}  // namespace tierpilot
