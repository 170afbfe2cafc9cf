#include "daemon/agent/tasks/port_hold.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace tierpilot::agent {
namespace {

// Of both kinds of addresses where there are both.
Result<UniqueFd> bound(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return fail_errno(errno, "a port for the ranks of a gang: socket");
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  sockaddr_in address4{};
  address4.sin_family = AF_INET;
  const int both = 0;
  if (family == AF_INET6)
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both);
  const auto* address = family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&address6)
                                           : reinterpret_cast<const sockaddr*>(&address4);
  const socklen_t size = family == AF_INET6 ? sizeof address6 : sizeof address4;
  if (::bind(fd.get(), address, size) != 0)
    return fail_errno(errno, "a port for the ranks of a gang: bind");
  return fd;
}

}  // namespace

Result<PortHold> PortHold::any() {
  auto fd = bound(AF_INET6);
  if (!fd) fd = bound(AF_INET);
  if (!fd) return tl::unexpected(fd.error());
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd->get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return fail_errno(errno, "a port for the ranks of a gang: getsockname");
  const in_port_t port = address.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                             : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return PortHold(std::move(*fd), ntohs(port));
}

}  // namespace tierpilot::agent
