// The kernel's page calls, as one interface, so that tests can be a machine with more nodes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace tierpilot {

class PageKernel {
 public:
  virtual ~PageKernel() = default;

  // move_pages(2) with MPOL_MF_MOVE. Per page `status` gets the node it is on, or -errno; pages the
  // kernel did not come to keep what they had. Returns 0, the number of pages that were not moved,
  // or -errno for the call: -ESRCH (no such process), -EPERM.
  virtual int move_pages(pid_t pid, std::span<void* const> pages, int node,
                         std::span<int> status) = 0;
  // Where pages are: the node, -ENOENT for a page that is not there, -EFAULT for the zero page or
  // no mapping. Returns 0 or -errno.
  virtual int locate_pages(pid_t pid, std::span<void* const> pages, std::span<int> status) = 0;

  // Starts of the huge pages (transparent, or of hugetlbfs) that lie in or reach into [start, end).
  // kUnavailable before 6.7, which has no PAGEMAP_SCAN.
  virtual Result<std::vector<uint64_t>> huge_pages(pid_t pid, uint64_t start, uint64_t end) = 0;
};

// The running kernel's. Any thread.
PageKernel& system_page_kernel();

}  // namespace tierpilot
