// On which nodes each mapping of a process has its pages, from /proc/<pid>/numa_maps.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot {

struct MappingNodes {
  uint64_t start = 0;
  std::string policy;  // "default", "bind:0", "interleave:0-1"
  std::string name;    // a path, "heap", "stack"; "" for anonymous memory
  uint64_t page_bytes = 4096;
  std::map<int, uint64_t> pages_on_node;

  uint64_t bytes() const;
};

// Mappings with resident pages. kNotFound: no such process, or a kernel without NUMA; kDenied.
Result<std::vector<MappingNodes>> read_numa_maps(const Sysroot& sysroot, pid_t pid);
// kInvalid names the line.
Result<std::vector<MappingNodes>> parse_numa_maps(std::string_view text);

}  // namespace tierpilot
