// The measured programs. Each has one array of `bytes` and one thread.
//
//   hot-set    reads random cache lines: nine of ten in one quarter of the pages
//   streaming  reads all cache lines, over and over
//   key-value  a hash table with values of 1 KiB: Zipfian GETs, and PUTs one time in ten
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/bench/placement/board.h"

namespace tierpilot::bench {

enum class ProgramKind { kHotSet, kStreaming, kKeyValue };

std::string_view program_name(ProgramKind kind);
std::optional<ProgramKind> program_from_name(std::string_view name);

struct ProgramOptions {
  ProgramKind kind = ProgramKind::kHotSet;
  uint64_t bytes = 64 << 20;
  std::optional<int> node{};  // all of the array there; nothing: first touch decides
};

class Program {
 public:
  virtual ~Program() = default;
  // Fills the array, in the order of its addresses.
  virtual void load() = 0;
  // About a thousand operations.
  virtual void run(Board& board) = 0;
  // Operations done by one run().
  static constexpr uint64_t kBatch = 1024;
};

// `data` has options.bytes.
std::unique_ptr<Program> make_program(const ProgramOptions& options, char* data);

// The share of the cache lines asked for that each page gets; empty when all get the same.
std::vector<double> page_weights(const ProgramOptions& options, uint32_t hot_quarter);

// The measured process: loads, waits for board.go, runs until it is killed.
int run_program(const ProgramOptions& options, int board_fd);

}  // namespace tierpilot::bench
