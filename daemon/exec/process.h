// Small things that the warden and the supervisors do to processes, their own among them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot {

// Children of the calling thread, zombies among them. Complete when nothing else reaps them: the
// kernel's list only skips entries when one leaves it during the read. Nothing: nobody can look
// now.
std::optional<std::vector<pid_t>> children_of_self();

// Makes the calling process an adopter of orphans below it, deaf to every signal but SIGKILL and
// SIGSTOP, without any descriptor but stderr and `keep` (-1: none); a signalfd tells of SIGCHLD and
// SIGUSR1.
Result<UniqueFd> become_minder(std::string_view name, std::vector<int> keep);

// Waits for the descriptor at most `timeout_ms` (-1: for ever); a signal does not end the wait.
bool wait_readable(int fd, int timeout_ms);

}  // namespace tierpilot
