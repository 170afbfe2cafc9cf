// What is mounted from here on is seen by this process and its children only, and is gone with
// them.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

namespace tierpilot::chaos {

// While the process has one thread. Why not, where that is not allowed.
inline std::optional<std::string> enter_own_mounts() {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return std::string("no mounts of its own: ") + std::strerror(errno);
  return std::nullopt;
}

}  // namespace tierpilot::chaos
