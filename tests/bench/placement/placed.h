// Where a program's pages are, held against how much it uses them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/result.h"
#include "daemon/memory/mover/page_kernel.h"
#include "tests/bench/placement/program.h"

namespace tierpilot::bench {

struct Placed {
  double fast_share = 0;         // of all pages
  double fast_access_share = 0;  // of all accesses: those that go to fast memory
  // The hot set is the hottest quarter of the pages; nothing when all pages are alike.
  std::optional<double> recall;     // of the hot set's pages: those in fast memory
  std::optional<double> precision;  // of the pages in fast memory: those of the hot set
};

class PlacedPages {
 public:
  PlacedPages(PageKernel& kernel, const ProgramOptions& program, pid_t pid, uint64_t data_start,
              int fast_node);

  void set_hot_quarter(uint32_t quarter);
  // Every eighth page, others each time.
  Result<Placed> look();
  // Puts the hottest pages into fast memory, as many as are there now, and the others out of it:
  // what somebody could do who knew what the program will do.
  Status arrange(int slow_node);

 private:
  Status move(const std::vector<size_t>& pages, int node);
  void* address(size_t page) const;

  PageKernel& kernel_;
  ProgramOptions program_;
  pid_t pid_;
  uint64_t data_start_;
  int fast_node_;
  size_t pages_;
  size_t next_ = 0;
  std::vector<double> weights_;  // by page; empty when all are alike
  std::vector<bool> hot_;
  std::vector<size_t> by_weight_;  // hottest first
};

}  // namespace tierpilot::bench
