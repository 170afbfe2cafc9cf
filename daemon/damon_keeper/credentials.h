// Who may watch whom: who could look into a process anyhow, by the rules of ptrace(2).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot {

// Of a process, as /proc/PID shows them to everyone.
struct Credentials {
  std::array<uid_t, 3> uids{};  // real, effective, saved
  std::array<gid_t, 3> gids{};
  uint64_t permitted = 0;  // capabilities, a bit each
  uint64_t effective = 0;
  // Capabilities are worth something outside its own user namespace.
  bool initial_user_namespace = false;
  uid_t owner = 0;           // of /proc/PID: root's where the process may not be dumped
  uint64_t start_ticks = 0;  // two processes with one number differ in it
  bool has_memory = false;   // neither kernel thread nor zombie

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

// kNotFound: no such process.
Result<Credentials> read_credentials(const Sysroot& sysroot, pid_t pid);

// Those of the process that made the connection. It must live still: kNotFound. Its capabilities
// count as none where they may not be those with which it connected: it has another user or group
// now, may not be dumped, or the kernel is before 6.5 and does not hold on to it.
Result<Credentials> peer_credentials(const Sysroot& sysroot, int socket);

// With CAP_SYS_PTRACE every process may be watched.
bool may_trace_all(const Credentials& peer);
// kDenied, with the reason. Without CAP_SYS_PTRACE only dumpable processes of the same user and
// group without more capabilities, whose memory and use of it are open to the peer in /proc.
Status may_watch(const Credentials& peer, const Credentials& target);

}  // namespace tierpilot
