#include <fmt/format.h>
#include <inttypes.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "daemon/probe/memory/memory.h"

namespace tierpilot {

Result<double> transparent_huge_share(const TierMemory& memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const auto end = begin + memory.size();
  // A stream: of a process with many mappings smaps is longer than a Sysroot reads.
  std::ifstream smaps("/proc/self/smaps");
  uint64_t size_kib = 0, huge_kib = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t from = 0, to = 0;
    uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
      inside = from < end && to > begin;
    else if (inside && std::sscanf(line.c_str(), "Size: %" SCNu64, &kib) == 1)
      size_kib += kib;
    else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %" SCNu64, &kib) == 1)
      huge_kib += kib;
  }
  if (size_kib == 0) return fail(ErrorCode::kUnavailable, "/proc/self/smaps: it is not there");
  return static_cast<double>(huge_kib) / static_cast<double>(size_kib);
}

Result<HugeMemory> allocate_huge_on_node(int node, size_t bytes) {
  auto pool = allocate_on_node(node, bytes, PageSize::kPool);
  if (pool)
    return HugeMemory{.memory = std::move(*pool), .pooled = true, .how = "hugetlb pages of 2 MiB"};
  auto memory = allocate_on_node(node, bytes, PageSize::kHuge);
  if (!memory) return tl::unexpected(memory.error());
  HugeMemory huge{.memory = std::move(*memory), .how = {}};
  const auto share = huge.huge_share();
  huge.how =
      fmt::format("transparent huge pages ({}), since {}",
                  share ? fmt::format("{:.0f} % of it", *share * 100) : share.error().message,
                  pool.error().message);
  return huge;
}

}  // namespace tierpilot
