#include "daemon/probe/memory/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <memkind.h>
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/sysroot.h"
#include "base/unique_fd.h"

namespace tierpilot {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

class NodeMemory final : public TierMemory {
 public:
  NodeMemory(void* data, size_t bytes) {
    data_ = static_cast<std::byte*>(data);
    size_ = bytes;
  }
  ~NodeMemory() override { munmap(data_, size_); }
};

class DirectoryMemory final : public TierMemory {
 public:
  DirectoryMemory(memkind_t kind, void* data, size_t bytes) : kind_(kind) {
    data_ = static_cast<std::byte*>(data);
    size_ = bytes;
  }
  ~DirectoryMemory() override {
    memkind_free(kind_, data_);
    memkind_destroy_kind(kind_);
  }

 private:
  memkind_t kind_;
};

// Asks the kernel about a few pages: a policy it accepted may still have been overruled.
Status check_placement(const NodeMemory& memory, int node) {
  std::array<void*, 8> pages{};
  std::array<int, 8> nodes{};
  for (size_t i = 0; i < pages.size(); ++i)
    pages[i] = memory.data() + memory.size() / pages.size() * i / kPage * kPage;
  if (move_pages(0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0)
    return fail_errno(errno, fmt::format("node {}: where its pages lie (move_pages)", node));
  const auto stray =
      std::find_if(nodes.begin(), nodes.end(), [node](int at) { return at != node; });
  if (stray == nodes.end()) return {};
  if (*stray < 0) return fail_errno(-*stray, fmt::format("node {}: its pages", node));
  return fail(ErrorCode::kUnavailable,
              fmt::format("node {}: the kernel gave memory of node {} in its place", node, *stray));
}

// Without a NUMA policy (kernels built without it, containers that forbid it) memory still comes
// from the only node there is.
Status bind_to_node(void* data, size_t bytes, int node) {
  if (numa_available() < 0) {
    if (node == 0 && access("/sys/devices/system/node/node1", F_OK) != 0) return {};
    return fail(ErrorCode::kUnavailable,
                fmt::format("node {}: the kernel refuses NUMA policies here", node));
  }
  // libnuma ends the program or prints when asked for a node it does not know.
  const std::unique_ptr<bitmask, void (*)(bitmask*)> allowed(numa_get_mems_allowed(),
                                                             numa_bitmask_free);
  if (node > numa_max_node() || !numa_bitmask_isbitset(allowed.get(), static_cast<unsigned>(node)))
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("node {}: this process may not use its memory (cpuset), or it is offline",
                    node));
  // Preferred: a strict bind to a full node would call the OOM killer.
  numa_set_bind_policy(0);
  numa_tonode_memory(data, bytes, node);
  return {};
}

// Only aligned stretches become huge pages (kernels before 6.7 do not align a mapping themselves).
void* map_aligned(size_t bytes) {
  void* data =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return data;
  auto* begin = static_cast<std::byte*>(data);
  const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(data) % kHugePage) % kHugePage;
  if (head > 0) munmap(begin, head);
  if (head < kHugePage) munmap(begin + head + bytes, kHugePage - head);
  return begin + head;
}

void* map_from_pool(size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
}

// Touching a page that the pool does not have is a SIGBUS: ask first.
Status check_huge_pool(int node, size_t bytes) {
  const auto path = fmt::format(
      "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/free_hugepages", node);
  const auto free = Sysroot().read_int(path);
  if (!free) return tl::unexpected(free.error());
  const auto wanted = static_cast<int64_t>(bytes / kHugePage);
  if (*free >= wanted) return {};
  return fail(ErrorCode::kUnavailable,
              fmt::format("node {}: its hugetlb pool has {} free pages of 2 MiB of {} wanted", node,
                          *free, wanted));
}

}  // namespace

Result<std::unique_ptr<TierMemory>> allocate_on_node(int node, size_t bytes, PageSize page_size) {
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (page_size == PageSize::kPool)
    if (auto status = check_huge_pool(node, bytes); !status) return tl::unexpected(status.error());
  void* data = page_size == PageSize::kPool ? map_from_pool(bytes) : map_aligned(bytes);
  if (data == MAP_FAILED) return fail_errno(errno, fmt::format("node {}: {} bytes", node, bytes));
  auto memory = std::make_unique<NodeMemory>(data, bytes);
  // Advice: kernels without transparent huge pages refuse it, and base pages serve as well.
  if (page_size != PageSize::kPool)
    madvise(data, bytes, page_size == PageSize::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (auto status = bind_to_node(data, bytes, node); !status) return tl::unexpected(status.error());
  for (size_t at = 0; at < bytes; at += kPage) memory->data()[at] = std::byte{1};
  if (numa_available() >= 0)
    if (auto status = check_placement(*memory, node); !status)
      return tl::unexpected(status.error());
  return memory;
}

Result<std::unique_ptr<TierMemory>> allocate_in_directory(const std::string& directory,
                                                          size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  memkind_t kind = nullptr;
  // The arena keeps books of its own inside the file: leave it room.
  const size_t limit = std::max<size_t>(2 * bytes, MEMKIND_PMEM_MIN_SIZE + bytes);
  if (const int err = memkind_create_pmem(directory.c_str(), limit, &kind);
      err != MEMKIND_SUCCESS) {
    std::array<char, MEMKIND_ERROR_MESSAGE_SIZE> text{};
    memkind_error_message(err, text.data(), text.size());
    return fail(ErrorCode::kUnavailable,
                fmt::format("directory '{}': memkind: {}", directory, text.data()));
  }
  void* data = nullptr;
  if (memkind_posix_memalign(kind, &data, kPage, bytes) != 0) {
    memkind_destroy_kind(kind);
    return fail(ErrorCode::kExhausted,
                fmt::format("directory '{}': memkind has no {} bytes there", directory, bytes));
  }
  return std::make_unique<DirectoryMemory>(kind, data, bytes);
}

Result<DirectoryAccess> directory_access(const std::string& directory) {
  struct statfs fs {};
  if (statfs(directory.c_str(), &fs) != 0)
    return fail_errno(errno, fmt::format("directory '{}'", directory));
  if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC)
    return DirectoryAccess::kMemory;
  // A directory only hands the DAX flag down: ask a file that was made in it.
  UniqueFd file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  struct statx info {};
  if (file && statx(file.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) == 0)
    if (info.stx_attributes & STATX_ATTR_DAX) return DirectoryAccess::kDirect;
  return DirectoryAccess::kPaged;
}

Status drop_pages(const TierMemory& memory) {
  if (msync(memory.data(), memory.size(), MS_SYNC) != 0)
    return fail_errno(errno, "write back (msync)");
  // MADV_DONTNEED would only unmap; MADV_PAGEOUT reclaims clean file pages that nobody else maps.
  if (madvise(memory.data(), memory.size(), MADV_PAGEOUT) != 0)
    return fail_errno(errno, "drop pages (MADV_PAGEOUT, Linux 5.4)");
  return check_not_resident(memory.data(), memory.size());
}

Status check_not_resident(void* data, size_t bytes) {
  std::vector<unsigned char> resident((bytes + kPage - 1) / kPage);
  if (mincore(data, bytes, resident.data()) != 0) return fail_errno(errno, "mincore");
  const auto stayed = std::count_if(resident.begin(), resident.end(), [](auto r) { return r & 1; });
  if (static_cast<size_t>(stayed) * 16 <= resident.size()) return {};
  return fail(ErrorCode::kUnavailable,
              fmt::format("{} of {} pages cannot be dropped from memory", stayed, resident.size()));
}

}  // namespace tierpilot
