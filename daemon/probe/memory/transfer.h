// Moves real bytes between a tier and the next slower one, both ways, and times it.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "daemon/probe/memory/memory.h"
#include "daemon/topology/tiers.h"

namespace tierpilot {

struct TransferOptions {
  size_t bytes = 16 << 20;
  PageSize pages = PageSize::kBase;  // kHuge: by any means; nodes only
  size_t batch_bytes = 0;            // per call of the kernel; 0: as is best
};

struct Moved {
  // How long somebody waits for the first page, which is moved by itself; of a file until it is on
  // stable storage, or read from there.
  double first_page_ns = 0;
  double bytes_per_s = 0;  // of the others
  // What a file takes beside its bytes, if files are moved: a transfer of n bytes takes
  // start_ns + n / bytes_per_s (the model of Hockney: Parallel Computing 20(3), 1994), from the
  // times of a small one and a large one.
  std::optional<double> start_ns;
};

class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual std::string method() const = 0;
  // From the faster tier to the slower one, and back. Called in turn, evict first.
  virtual Result<Moved> evict() = 0;
  virtual Result<Moved> promote() = 0;
};

// Two nodes: the kernel moves pages (move_pages). A directory on either side: files are copied as
// the dataset pool does it, a node's being on tmpfs; a copy in a directory is synced and dropped
// from the page cache, so that it is read cold.
Result<std::unique_ptr<Transfer>> make_transfer(const TierSpec& fast, const TierSpec& slow,
                                                const TransferOptions& options);

}  // namespace tierpilot
