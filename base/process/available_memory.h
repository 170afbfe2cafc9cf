// Memory of the host that this process could still have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tierpilot {

// What is free or can be made so without swapping (MemAvailable), and no more than what the limits
// of the process's cgroups (version 2) leave, files that are cached counted as free. Nothing: the
// kernel does not tell. `root` is "" but in tests.
std::optional<int64_t> available_memory_bytes(const std::string& root = {});

}  // namespace tierpilot
