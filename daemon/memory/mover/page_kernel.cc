#include "daemon/memory/mover/page_kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <numaif.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "base/unique_fd.h"
#include "daemon/memory/heat/access.h"

namespace tierpilot {
namespace {

// include/uapi/linux/fs.h since 6.7; the headers of older systems lack them.
struct PageRegion {
  uint64_t start, end, categories;
};
struct PagemapScan {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
constexpr uint64_t kPageIsHuge = 1 << 6;

class SystemPageKernel final : public PageKernel {
 public:
  int move_pages(pid_t pid, std::span<void* const> pages, int node,
                 std::span<int> status) override {
    const std::vector<int> nodes(pages.size(), node);
    const long left = ::move_pages(pid, pages.size(), const_cast<void**>(pages.data()),
                                   nodes.data(), status.data(), MPOL_MF_MOVE);
    return left < 0 ? -errno : static_cast<int>(left);
  }

  int locate_pages(pid_t pid, std::span<void* const> pages, std::span<int> status) override {
    return ::move_pages(pid, pages.size(), const_cast<void**>(pages.data()), nullptr, status.data(),
                        0) < 0
               ? -errno
               : 0;
  }

  Result<std::vector<uint64_t>> huge_pages(pid_t pid, uint64_t start, uint64_t end) override {
    const auto path = fmt::format("/proc/{}/pagemap", pid);
    const UniqueFd pagemap(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!pagemap) return fail_errno(errno, path);
    std::vector<uint64_t> starts;
    PageRegion regions[64];
    PagemapScan scan{.size = sizeof scan,
                     .start = start & ~(kHugePageBytes - 1),
                     .end = (end + kHugePageBytes - 1) & ~(kHugePageBytes - 1),
                     .vec = reinterpret_cast<uint64_t>(regions),
                     .vec_len = std::size(regions),
                     .category_mask = kPageIsHuge,
                     .return_mask = kPageIsHuge};
    while (scan.start < scan.end) {
      const int found = ::ioctl(pagemap.get(), kPagemapScan, &scan);
      if (found < 0 && (errno == ENOTTY || errno == EINVAL))
        return fail(ErrorCode::kUnavailable, "unavailable: this kernel has no PAGEMAP_SCAN");
      if (found < 0) return fail_errno(errno, "PAGEMAP_SCAN of " + path);
      for (int i = 0; i < found; ++i)
        for (uint64_t at = regions[i].start & ~(kHugePageBytes - 1); at < regions[i].end;
             at += kHugePageBytes)
          if (starts.empty() || starts.back() < at) starts.push_back(at);
      scan.start = scan.walk_end;
    }
    return starts;
  }
};

}  // namespace

PageKernel& system_page_kernel() {
  static SystemPageKernel kernel;
  return kernel;
}

}  // namespace tierpilot
