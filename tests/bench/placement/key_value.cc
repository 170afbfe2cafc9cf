// The key-value program: an index with open addressing, and values in the order of their insertion,
// which has nothing to do with how often they are asked for.
#include <algorithm>
#include <bit>
#include <numeric>

#include "tests/bench/placement/program_parts.h"

namespace tierpilot::bench {
namespace {

constexpr uint64_t kValueBytes = 1024;
constexpr uint64_t kWords = kValueBytes / sizeof(uint64_t);
constexpr uint64_t kPutsInTen = 1;
constexpr int kRounds = 5400;  // what a server does for a request besides

struct Entry {
  uint64_t key;  // 0: none
  uint64_t slot;
};

uint64_t mix(uint64_t x) {  // splitmix64's finaliser (Steele et al., OOPSLA 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
uint64_t key_of(uint32_t rank) {
  return mix(rank + 1);
}

// The index comes first, then the values.
struct Layout {
  explicit Layout(uint64_t bytes)
      : entries(std::bit_floor(bytes / 32 / sizeof(Entry))),
        keys(static_cast<uint32_t>(
            std::min((bytes - entries * sizeof(Entry)) / kValueBytes, entries * 3 / 4))) {}
  uint64_t home(uint64_t key) const { return mix(key ^ 0x5bd1e995) & (entries - 1); }
  uint64_t values_start() const { return entries * sizeof(Entry); }

  uint64_t entries;
  uint32_t keys;
};

// Ranks in the order in which they are inserted.
std::vector<uint32_t> insertion_order(const Layout& layout) {
  std::vector<uint32_t> ranks(layout.keys);
  std::iota(ranks.begin(), ranks.end(), 0);
  Random random(42);
  for (uint32_t i = layout.keys; i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
  return ranks;
}

class KeyValue final : public Program {
 public:
  KeyValue(char* data, uint64_t bytes)
      : layout_(bytes),
        index_(reinterpret_cast<Entry*>(data)),
        values_(reinterpret_cast<uint64_t*>(data + layout_.values_start())),
        ranks_(layout_.keys) {}

  void load() override {
    std::fill(index_, index_ + layout_.entries, Entry{});
    uint64_t slot = 0;
    for (const uint32_t rank : insertion_order(layout_)) {
      Entry& entry = find(key_of(rank));
      entry = {key_of(rank), slot++};
      write(entry, rank);
    }
  }

  void run(Board& board) override {
    for (uint64_t i = 0; i < kBatch; ++i) {
      const Entry& entry = find(key_of(ranks_.next(random_)));
      if (random_.below(10) < kPutsInTen)
        write(entry, i);
      else if (!is_whole(entry))
        board.wrong.fetch_add(1, std::memory_order_relaxed);
      keep(compute(entry.key, kRounds));
      tlb_.count(1 + kValueBytes / kLineBytes);
    }
  }

 private:
  Entry& find(uint64_t key) {
    for (uint64_t at = layout_.home(key);; at = (at + 1) & (layout_.entries - 1))
      if (index_[at].key == key || index_[at].key == 0) return index_[at];
  }
  // The words of a value add up to its key.
  void write(const Entry& entry, uint64_t content) {
    uint64_t* value = values_ + entry.slot * kWords;
    uint64_t sum = 0;
    for (uint64_t w = 1; w < kWords; ++w) sum += value[w] = content + w;
    value[0] = entry.key - sum;
  }
  bool is_whole(const Entry& entry) const {
    const uint64_t* value = values_ + entry.slot * kWords;
    return std::accumulate(value, value + kWords, uint64_t{0}) == entry.key;
  }

  Layout layout_;
  Entry* index_;
  uint64_t* values_;
  ZipfRanks ranks_;
  Random random_{88172645463325252ULL};
  EmulatedTlb tlb_;
};

}  // namespace

std::unique_ptr<Program> make_key_value(char* data, uint64_t bytes) {
  return std::make_unique<KeyValue>(data, bytes);
}

std::vector<double> key_value_weights(uint64_t bytes) {
  const Layout layout(bytes);
  const ZipfRanks ranks(layout.keys);
  std::vector<double> weights(bytes / kPageBytes, 0);
  constexpr double kLines = kValueBytes / kLineBytes;
  uint64_t slot = 0;
  for (const uint32_t rank : insertion_order(layout)) {
    const double share = ranks.probability(rank) / (kLines + 1);
    // Keys that had to step aside are few, and seldom on another page.
    weights[layout.home(key_of(rank)) * sizeof(Entry) / kPageBytes] += share;
    weights[(layout.values_start() + slot++ * kValueBytes) / kPageBytes] += share * kLines;
  }
  return weights;
}

}  // namespace tierpilot::bench
