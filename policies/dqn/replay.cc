#include "policies/dqn/replay.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace tierpilot {
namespace {

void mix(uint64_t& hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15 + (hash << 6) + (hash >> 2);
}

uint64_t hash_of(const Observation& seen) {
  const std::string_view bytes(reinterpret_cast<const char*>(seen.values.data()),
                               seen.values.size() * sizeof(float));
  uint64_t hash = std::hash<std::string_view>{}(bytes);
  mix(hash, std::hash<SlotMask>{}(seen.candidates));
  return hash;
}

uint64_t fingerprint(const Experience& experience) {
  uint64_t hash = hash_of(*experience.seen);
  mix(hash, hash_of(*experience.next));
  mix(hash, experience.action);
  mix(hash, std::hash<double>{}(experience.reward));
  return hash;
}

}  // namespace

bool ReplayBuffer::add(Experience experience) {
  if (!fingerprints_.insert(fingerprint(experience)).second) return false;
  if (entries_.size() == capacity_) {
    fingerprints_.erase(fingerprint(entries_.front()));
    entries_.erase(entries_.begin());
  }
  entries_.push_back(std::move(experience));
  return true;
}

std::vector<Experience> ReplayBuffer::draw(size_t count, std::mt19937_64& generator, bool remove) {
  std::vector<size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> chosen;
  std::sample(order.begin(), order.end(), std::back_inserter(chosen), count, generator);

  std::vector<Experience> drawn;
  for (size_t i : chosen) drawn.push_back(entries_[i]);
  if (!remove) return drawn;
  for (const Experience& experience : drawn) fingerprints_.erase(fingerprint(experience));
  for (auto i = chosen.rbegin(); i != chosen.rend(); ++i)
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(*i));
  return drawn;
}

}  // namespace tierpilot
