// Where a process's memory is, from /proc/<pid>/smaps.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/memory/heat/access.h"

namespace tierpilot {

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string permissions;               // "rw-p"
  std::string name;                      // a path, "[heap]", "" for anonymous memory
  uint64_t resident_bytes = 0;           // hugetlbfs included
  uint64_t huge_bytes = 0;               // resident in transparent huge pages
  uint32_t page_bytes = kBasePageBytes;  // larger for hugetlbfs

  bool shared() const { return permissions.size() > 3 && permissions[3] == 's'; }
  uint64_t bytes() const { return end - start; }
};

// Sorted and disjoint. kNotFound when the process is gone, kDenied without CAP_SYS_PTRACE on
// somebody else's.
Result<std::vector<Mapping>> read_mappings(const Sysroot& sysroot, pid_t pid);
// The same of a text. kInvalid names the line that is not as the kernel writes it.
Result<std::vector<Mapping>> parse_smaps(std::string_view text);

struct RangeFilter {
  uint64_t min_bytes = 64 << 10;  // smaller mappings are not worth following
  bool file_backed = false;       // program text, libraries, mapped files
};

// What can be tracked and moved: resident, accessible, and no kernel page ([vdso]). A mapping with
// huge pages is tracked in stretches of their size.
std::vector<TrackedRange> trackable_ranges(const std::vector<Mapping>& mappings,
                                           const RangeFilter& filter = {});

}  // namespace tierpilot
