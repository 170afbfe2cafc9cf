#include "daemon/exec/memory_policy.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/sysroot.h"

namespace tierpilot {
namespace {

constexpr size_t kBits = sizeof(unsigned long) * CHAR_BIT;

std::vector<unsigned long> mask_of(const std::vector<int>& nodes) {
  std::vector<unsigned long> mask(kMaxNumaNode / kBits + 1);
  for (const int node : nodes)
    mask[static_cast<size_t>(node) / kBits] |= 1UL << (static_cast<size_t>(node) % kBits);
  return mask;
}

bool set(int mode, const std::vector<int>& nodes) {
  const auto mask = mask_of(nodes);
  // The kernel takes one bit less than it is told.
  return ::syscall(SYS_set_mempolicy, mode, mask.data(), mask.size() * kBits + 1) == 0;
}

}  // namespace

Status set_memory_policy(const std::vector<int>& nodes, bool interleave) {
  if (nodes.empty()) return {};
  if (set(interleave ? MPOL_INTERLEAVE : MPOL_PREFERRED_MANY, nodes)) return {};
  // Kernels before 5.15 prefer one node only.
  if (!interleave && errno == EINVAL && set(MPOL_PREFERRED, {nodes.front()})) return {};
  return fail_errno(
      errno, fmt::format("cannot {} memory of NUMA nodes {}", interleave ? "interleave" : "prefer",
                         format_id_list(nodes)));
}

}  // namespace tierpilot
