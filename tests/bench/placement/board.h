// What the benchmark and the program it measures share, in a memory file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot::bench {

struct Board {
  std::atomic<uint64_t> operations{0};
  std::atomic<uint64_t> wrong{0};       // answers that were not what had been stored
  std::atomic<uint64_t> data_start{0};  // set before `ready`
  std::atomic<uint32_t> hot_quarter{3};
  std::atomic<bool> ready{false};  // the data is in memory
  std::atomic<bool> go{false};
};

struct UnmapBoard {
  void operator()(Board* board) const;
};
using BoardPtr = std::unique_ptr<Board, UnmapBoard>;

// The file stays open across exec.
Result<UniqueFd> make_board();
Result<BoardPtr> map_board(int fd);

}  // namespace tierpilot::bench
