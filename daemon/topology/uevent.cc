#include "daemon/topology/uevent.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tierpilot {
namespace {

constexpr unsigned kKernelGroup = 1;  // udev sends to group 2

// Taking a memory device online announces each of its blocks: some thousands.
constexpr int kReceiveBuffer = 1 << 20;

}  // namespace

bool Uevent::is_about_memory() const {
  constexpr std::string_view kSubsystems[] = {"memory", "node", "dax", "cxl", "memory_tiering"};
  return std::count(std::begin(kSubsystems), std::end(kSubsystems), subsystem) > 0;
}

std::optional<Uevent> parse_uevent(std::string_view datagram) {
  const auto next_field = [&datagram] {
    const auto field = datagram.substr(0, datagram.find('\0'));
    datagram.remove_prefix(std::min(field.size() + 1, datagram.size()));
    return field;
  };
  const auto header = next_field();
  const auto at = header.find('@');
  if (at == 0 || at == std::string_view::npos || !header.substr(at + 1).starts_with('/'))
    return std::nullopt;
  Uevent event{.action = std::string(header.substr(0, at)),
               .path = std::string(header.substr(at + 1))};
  constexpr std::string_view kSubsystem = "SUBSYSTEM=";
  while (!datagram.empty())
    if (const auto field = next_field(); field.starts_with(kSubsystem))
      event.subsystem = field.substr(kSubsystem.size());
  return event;
}

Result<UeventSocket> UeventSocket::open() {
  UniqueFd fd(
      socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!fd) return fail_errno(errno, "kernel device announcements (NETLINK_KOBJECT_UEVENT)");
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return fail_errno(errno, "kernel device announcements (NETLINK_KOBJECT_UEVENT)");
  return UeventSocket(std::move(fd));
}

bool UeventSocket::drain() {
  std::array<char, 8192> datagram;
  for (bool about_memory = false;;) {
    sockaddr_nl sender{};
    socklen_t size = sizeof sender;
    const ssize_t got = recvfrom(fd_.get(), datagram.data(), datagram.size(), 0,
                                 reinterpret_cast<sockaddr*>(&sender), &size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      about_memory = true;
      continue;
    }
    if (got < 0) return about_memory;
    // Only the kernel has port 0: other processes may send to the group as well.
    if (sender.nl_pid != 0) continue;
    const auto event = parse_uevent({datagram.data(), static_cast<size_t>(got)});
    about_memory |= event && event->is_about_memory();
  }
}

}  // namespace tierpilot
