// Which processes hold BPF objects open, from /proc/<pid>/fdinfo.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/sysroot.h"

namespace tierpilot {

// Process ids by object id; `key` is "prog_id" or "map_id". A link's fdinfo names its program too.
// Processes that may not be looked at are left out.
std::map<uint32_t, std::vector<int>> find_holders(const Sysroot& sysroot, std::string_view key);

}  // namespace tierpilot
