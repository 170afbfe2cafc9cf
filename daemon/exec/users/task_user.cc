#include "daemon/exec/users/task_user.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tierpilot {
namespace {

// SETUID, SETGID: to become the user. CHOWN: to hand files over and take them back. KILL: to end
// it.
constexpr std::array<std::pair<unsigned, const char*>, 4> kNeeded{{{CAP_SETUID, "CAP_SETUID"},
                                                                   {CAP_SETGID, "CAP_SETGID"},
                                                                   {CAP_CHOWN, "CAP_CHOWN"},
                                                                   {CAP_KILL, "CAP_KILL"}}};

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};

  Status read() {
    if (::syscall(SYS_capget, &header, sets) < 0) return fail_errno(errno, "capget");
    return {};
  }
  Status write() {
    if (::syscall(SYS_capset, &header, sets) < 0) return fail_errno(errno, "capset");
    return {};
  }
};

}  // namespace

std::string missing_user_privileges() {
  Capabilities own;
  std::string missing;
  const bool known = own.read().has_value();
  for (const auto& [number, name] : kNeeded)
    if (!known || !(own.sets[0].effective & 1U << number)) missing += std::string(" ") + name;
  return missing;
}

Status give_up_user_privileges() {
  Capabilities own;
  if (auto status = own.read(); !status) return status;
  for (const auto& [number, name] : kNeeded) {
    // So that root's execve does not bring them back. Needs CAP_SETPCAP, which others lack: they
    // need no bound, as nothing is kept that an execve could raise.
    ::prctl(PR_CAPBSET_DROP, number);
    for (auto* set : {&own.sets[0].effective, &own.sets[0].permitted, &own.sets[0].inheritable})
      *set &= ~(1U << number);
  }
  // What the daemon starts beside tasks (health commands, MPS) needs no privilege of any kind.
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return own.write();
}

Status bound_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail_errno(errno, "PR_SET_NO_NEW_PRIVS");
  // Needs CAP_SETPCAP; without it no_new_privs alone keeps root's execve from regaining them.
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    ::prctl(PR_CAPBSET_DROP, capability);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return {};
}

Status become_user(const TaskUser& user) {
  const auto what = fmt::format("becoming user {}", user.uid);
  // Through the C library these would ask other threads too; a forked process has none.
  if (::setgroups(user.groups.size(), user.groups.data()) != 0 ||
      ::setresgid(user.gid, user.gid, user.gid) != 0 ||
      ::setresuid(user.uid, user.uid, user.uid) != 0)
    return fail_errno(errno, what);
  return {};
}

Status give_up_all_privileges() {
  return Capabilities().write();
}

}  // namespace tierpilot
