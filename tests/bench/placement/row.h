// One row of the comparison: a program under one way of placing its pages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/memory/loop/paging_loop.h"
#include "tests/bench/placement/fast_room.h"
#include "tests/bench/placement/kernel.h"
#include "tests/bench/placement/placed.h"

namespace tierpilot::bench {

enum class RowKind {
  kAllFast,     // the oracle: a fast node that is large enough for all
  kAllFar,      // nothing in fast memory
  kFirstTouch,  // what is touched first is in fast memory, until that is full, and stays there
  kByHand,      // as many of the hottest pages as fit, known in advance: what placing can give
  kKernel,      // numa_balancing=2 with demotion
  kTierpilot,   // the placement loop
};

std::string_view row_name(RowKind kind);
std::optional<RowKind> row_from_name(std::string_view name);

struct Tick {
  double at_s = 0;  // its end, since the program began
  double operations_per_s = 0;
  Placed placed;  // at its end
};

struct RowRun {
  std::vector<Tick> ticks;
  double changed_at_s = 0;  // the hot quarter changed place; for programs that have one
  double operations = 0;
  double seconds = 0;
  uint64_t wrong_answers = 0;
  KernelCounters kernel;
  CpuTimes program_cpu;
  LoopCounters loop;    // kTierpilot
  std::string tracker;  // kTierpilot
};

struct RowOptions {
  ProgramOptions program;
  double phase_s = 12;  // the hot-set program has two phases, the others one of twice the length
  double tick_s = 0.25;
  uint64_t fast_bytes = 18 << 20;  // of the array, for all rows but the first two
  LoopOptions loop;
};

// The two tiers that are compared, and the memory that makes the fast one small.
struct Stage {
  const Sysroot& sysroot;
  std::vector<PagingTier> tiers;
  FastRoom& room;

  int fast_node() const { return tiers.front().nodes.front(); }
  int slow_node() const { return tiers.back().nodes.front(); }
};

// kUnavailable says what the machine lacks for this row; SIGINT and SIGTERM, which the caller has
// blocked, end it with kIo.
Result<RowRun> run_row(RowKind kind, const RowOptions& options, Stage& stage);

}  // namespace tierpilot::bench
