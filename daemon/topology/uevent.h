// The kernel's announcements of devices that come and go (NETLINK_KOBJECT_UEVENT).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot {

struct Uevent {
  std::string action;     // "add", "remove", "online", "offline", "bind", "change", ...
  std::string path;       // below /sys: "/devices/system/node/node1"
  std::string subsystem;  // "memory", "node", "dax"; may be empty

  // Whether it may change what tiers this machine has.
  bool is_about_memory() const;
};

// "add@/devices/...", then KEY=VALUE, each ended by NUL. Nothing for anything else: udev's own
// messages, which begin "libudev", and garbage.
std::optional<Uevent> parse_uevent(std::string_view datagram);

// Owned by one thread. No privilege is needed to listen.
class UeventSocket {
 public:
  // kUnavailable where the kernel or a container refuses it.
  static Result<UeventSocket> open();
  int fd() const { return fd_.get(); }
  // Reads all that has arrived. True when something was about memory, or when announcements were
  // lost, which may have been.
  bool drain();

 private:
  explicit UeventSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace tierpilot
