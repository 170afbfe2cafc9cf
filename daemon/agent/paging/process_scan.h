// The processes of this machine, as far as it takes to find those whose memory is placed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot::agent {

struct ScannedProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  uint64_t started_ticks = 0;  // since boot; with the pid it names a process for good
  uint64_t resident_bytes = 0;
};

// A line of /proc/<pid>/stat. kInvalid when it is not as the kernel writes it.
Result<ScannedProcess> parse_process_stat(std::string_view line);

// At most `limit` processes; those that end meanwhile are left out.
std::vector<ScannedProcess> scan_processes(const Sysroot& sysroot, size_t limit);

}  // namespace tierpilot::agent
