// Moves pages of a process to a NUMA node, in batches, at a limited rate, and says what became of
// each page. Changes no kernel setting and holds nothing in the kernel: a mover that is killed
// between or within two calls leaves every page on one node or the other.
#pragma once

#include <sys/types.h>

#include <map>
#include <span>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "daemon/memory/mover/pace.h"
#include "daemon/memory/mover/page_kernel.h"

namespace tierpilot {

struct MoverOptions {
  uint64_t batch_bytes = 2 << 20;  // a call of move_pages; at least a page of the largest size
  uint64_t bytes_per_s = 0;        // 0: as fast as the kernel can
  int attempts = 3;                // for pages that are busy
  int64_t retry_ns = 2'000'000;    // before the second attempt, twice as long before the third
  // A node that had no room is left alone so long, then twice as long, up to 64 times.
  int64_t full_node_pause_ns = 1'000'000'000;
};

struct MoveRequest {
  pid_t pid = 0;
  uint64_t start = 0;  // huge pages that begin before or end after the range are moved whole
  uint64_t end = 0;
  uint32_t page_bytes = 4096;  // 2 MiB: also base pages among huge ones
  std::vector<int> nodes;      // the first one with room; pages on any of them stay
};

struct MoveResult {
  uint64_t bytes_moved = 0;
  uint64_t bytes_there = 0;  // were on one of the nodes
  // Not in memory: never touched, swapped out, unmapped. Or hidden by this kernel, see
  // KernelSettings::hides_hinted_pages.
  uint64_t bytes_absent = 0;
  std::map<int, uint64_t>
      pages_failed;  // by errno: EBUSY, ENOMEM, EACCES (shared with others), ...
  bool stopped = false;

  void add(const MoveResult& other);
};

// One thread at a time.
class Mover {
 public:
  Mover(PageKernel& kernel, Pacer& pacer, MoverOptions options = {})
      : kernel_(kernel), pacer_(pacer), options_(options), limiter_(options.bytes_per_s) {}

  // kNotFound: the process has ended; kDenied: CAP_SYS_NICE (and CAP_SYS_PTRACE) is missing.
  // Everything less is in the result.
  Result<MoveResult> move(const MoveRequest& request, std::stop_token stop = {});
  // Requests of one process for the same nodes, small ones together in a batch: each call of the
  // kernel waits for all CPUs once, whatever it moves. A result for each.
  Result<std::vector<MoveResult>> move_all(std::span<const MoveRequest> requests,
                                           std::stop_token stop = {});

 private:
  // Pages, and of which request they are.
  struct Batch {
    std::vector<void*> pages;
    std::vector<uint64_t> page_bytes;
    std::vector<size_t> owners;
    uint64_t bytes = 0;

    void add(uint64_t address, uint64_t page, size_t owner);
    void keep(size_t from, size_t to);  // overwrites entry `to`, which is not behind `from`
    void resize(size_t count);
  };
  using Results = std::span<MoveResult>;

  void add_pages(const MoveRequest& request, uint64_t start, uint64_t end,
                 const Result<std::vector<uint64_t>>& huge, size_t owner, Batch& batch) const;
  Status move_batch(const MoveRequest& request, Batch batch, std::stop_token stop, Results results);
  // Drops from the batch what needs no move.
  Status sort_out(const MoveRequest& request, Batch& batch, Results results);
  // Moves what it can to `node`; what is left has its errno in `why`.
  Status attempt(const MoveRequest& request, int node, Batch& batch, std::vector<int>& why,
                 Results results);
  bool is_paused(int node) const;
  void pause(int node);

  struct Pause {
    int64_t until_ns = 0;
    int64_t length_ns = 0;
  };

  PageKernel& kernel_;
  Pacer& pacer_;
  const MoverOptions options_;
  RateLimiter limiter_;
  std::map<int, Pause> paused_;
};

}  // namespace tierpilot
