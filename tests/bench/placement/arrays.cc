// The hot-set and the streaming program.
#include "tests/bench/placement/program.h"
#include "tests/bench/placement/program_parts.h"

namespace tierpilot::bench {
namespace {

class HotSet final : public Program {
 public:
  HotSet(char* data, uint64_t bytes) : data_(data), lines_(bytes / kLineBytes) {}

  void load() override {
    for (uint64_t at = 0; at < lines_ * kLineBytes; at += 8) word(at) = at;
  }

  void run(Board& board) override {
    const uint64_t quarter = board.hot_quarter.load(std::memory_order_relaxed);
    const uint64_t hot = quarter * (lines_ / 4);
    for (uint64_t i = 0; i < kBatch; ++i) {
      const bool is_hot = random_.below(10) < 9;
      uint64_t line = is_hot ? hot + random_.below(lines_ / 4) : random_.below(lines_ / 4 * 3);
      if (!is_hot && line >= hot) line += lines_ / 4;
      sum_ = compute(sum_ ^ word(line * kLineBytes), kRounds);
    }
    tlb_.count(kBatch);
    keep(sum_);
  }

 private:
  static constexpr int kRounds = 264;
  uint64_t& word(uint64_t at) { return *reinterpret_cast<uint64_t*>(data_ + at); }

  char* data_;
  uint64_t lines_;
  Random random_{88172645463325252ULL};
  EmulatedTlb tlb_;
  uint64_t sum_ = 0;
};

class Streaming final : public Program {
 public:
  Streaming(char* data, uint64_t bytes) : data_(data), lines_(bytes / kLineBytes) {}

  void load() override {
    for (uint64_t at = 0; at < lines_ * kWords; ++at) words()[at] = at;
  }

  void run(Board& /*board*/) override {
    for (uint64_t i = 0; i < kBatch; ++i) {
      const uint64_t* line = words() + next_ * kWords;
      for (uint64_t w = 0; w < kWords; ++w) sum_ += line[w];
      sum_ = compute(sum_, kRounds);
      if (++next_ == lines_) next_ = 0;
    }
    tlb_.count(kBatch);
    keep(sum_);
  }

 private:
  static constexpr int kRounds = 350;
  static constexpr uint64_t kWords = kLineBytes / sizeof(uint64_t);
  uint64_t* words() { return reinterpret_cast<uint64_t*>(data_); }

  char* data_;
  uint64_t lines_;
  uint64_t next_ = 0;
  EmulatedTlb tlb_;
  uint64_t sum_ = 0;
};

}  // namespace

std::unique_ptr<Program> make_hot_set(char* data, uint64_t bytes) {
  return std::make_unique<HotSet>(data, bytes);
}

std::unique_ptr<Program> make_streaming(char* data, uint64_t bytes) {
  return std::make_unique<Streaming>(data, bytes);
}

std::vector<double> hot_set_weights(uint64_t pages, uint32_t hot_quarter) {
  std::vector<double> weights(pages, 0.1 / (static_cast<double>(pages) * 0.75));
  const uint64_t quarter = pages / 4;
  for (uint64_t p = 0; p < quarter; ++p)
    weights[hot_quarter * quarter + p] = 0.9 / static_cast<double>(quarter);
  return weights;
}

}  // namespace tierpilot::bench
