#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "swap/tiers/tier.h"

namespace tierpilot::swap {
namespace {

class MemoryTier : public Tier {
 public:
  MemoryTier(std::string name, std::byte* data, int64_t bytes)
      : name_(std::move(name)), data_(data), bytes_(bytes) {}
  ~MemoryTier() override { munmap(data_, static_cast<size_t>(bytes_)); }

  const std::string& name() const override { return name_; }
  std::string_view kind() const override { return "memory"; }
  int64_t capacity_bytes() const override { return bytes_; }
  std::span<std::byte> memory() override { return {data_, static_cast<size_t>(bytes_)}; }
  Status write(int64_t offset, const std::byte* data, int64_t bytes, Staging&) override {
    std::memcpy(data_ + offset, data, static_cast<size_t>(bytes));
    return {};
  }
  Status read(int64_t offset, std::byte* data, int64_t bytes, Staging&) override {
    std::memcpy(data, data_ + offset, static_cast<size_t>(bytes));
    return {};
  }

 private:
  std::string name_;
  std::byte* data_;
  int64_t bytes_;
};

Status bind_to(void* data, int64_t bytes, int node) {
  if (numa_available() < 0 || node > numa_max_node() ||
      !numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(node)))
    return fail(ErrorCode::kUnavailable, fmt::format("this machine has no NUMA node {}", node));
  auto* nodes = numa_allocate_nodemask();
  numa_bitmask_setbit(nodes, static_cast<unsigned>(node));
  const auto bound =
      mbind(data, static_cast<size_t>(bytes), MPOL_BIND, nodes->maskp, nodes->size + 1, 0);
  const int error = errno;
  numa_free_nodemask(nodes);
  if (bound != 0) return fail_errno(error, fmt::format("memory of NUMA node {}", node));
  return {};
}

}  // namespace

Result<std::unique_ptr<Tier>> open_memory_tier(std::string name, int node, int64_t bytes,
                                               MemoryPages pages) {
  bytes = bytes / 4096 * 4096;
  const int kind = pages == MemoryPages::kToPin ? MAP_PRIVATE : MAP_SHARED;
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return fail_errno(errno, fmt::format("tier '{}': memory", name));
  if (pages == MemoryPages::kToPin) (void)madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  // After a fork the parent's next write to a pinned page would go to another one than a copy under
  // way; and the child, which can use none of it, would keep all of it.
  (void)madvise(data, static_cast<size_t>(bytes), MADV_DONTFORK);
  auto tier = std::make_unique<MemoryTier>(std::move(name), static_cast<std::byte*>(data), bytes);
  if (node >= 0)
    if (auto status = bind_to(data, bytes, node); !status) return tl::unexpected(status.error());
  return tier;
}

}  // namespace tierpilot::swap
