// What the kernel tells of a machine's or a node's memory in a file called meminfo.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tierpilot {

// The figure of "Node 0 MemTotal:  5466324 kB" or "MemTotal:  5466324 kB", in bytes.
std::optional<uint64_t> meminfo_bytes(std::string_view text, std::string_view key);

}  // namespace tierpilot
