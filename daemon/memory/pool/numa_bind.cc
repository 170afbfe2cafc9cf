#include "daemon/memory/pool/numa_bind.h"

#include <fmt/format.h>
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

namespace tierpilot {
namespace {

struct FreeBitmask {
  void operator()(bitmask* mask) const { numa_bitmask_free(mask); }
};
using Bitmask = std::unique_ptr<bitmask, FreeBitmask>;

}  // namespace

Status check_numa_node(int node, uint64_t bytes) {
  if (numa_available() < 0)
    return fail(ErrorCode::kUnavailable,
                fmt::format("NUMA node {}: this kernel has no NUMA policies", node));
  const Bitmask allowed(numa_get_mems_allowed());
  if (node > numa_max_node() || !numa_bitmask_isbitset(allowed.get(), static_cast<unsigned>(node)))
    return fail(ErrorCode::kInvalid,
                fmt::format("NUMA node {} has no memory that this process may use", node));
  // A strict policy on a full node calls the OOM killer instead of failing.
  const long long size = numa_node_size64(node, nullptr);
  if (size >= 0 && bytes > static_cast<uint64_t>(size))
    return fail(ErrorCode::kInvalid,
                fmt::format("a budget of {} bytes is more than the {} bytes of "
                            "NUMA node {}: lower the budget",
                            bytes, size, node));
  return {};
}

Status bind_pages(int fd, uint64_t span, int node) {
  if (span == 0) return {};
  // Beyond the end of the file too: a write copy may grow.
  void* map = ::mmap(nullptr, span, PROT_NONE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return fail_errno(errno, "cannot map the file to bind its pages");
  const Bitmask nodes(numa_allocate_nodemask());
  numa_bitmask_setbit(nodes.get(), static_cast<unsigned>(node));
  // The kernel reads one bit less than it is told.
  const long rc = ::mbind(map, span, MPOL_BIND, nodes->maskp, nodes->size + 1, 0);
  const int err = errno;
  ::munmap(map, span);
  if (rc != 0) return fail_errno(err, fmt::format("cannot bind pages to NUMA node {}", node));
  return {};
}

}  // namespace tierpilot
