// Processes of MPS that nobody answers for any more: an earlier daemon was killed, or its control
// daemon hangs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

namespace tierpilot::agent {

// Control daemons and servers, not their clients, whose pipes are in this folder.
std::vector<pid_t> mps_processes(const std::filesystem::path& pipes);
// SIGTERM, and SIGKILL a second later. Blocks as long. False: there were none.
bool end_mps_processes(const std::filesystem::path& pipes);

}  // namespace tierpilot::agent
