// A TCP port of loopback that was free when it was asked for.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/unique_fd.h"

namespace tierpilot::test {

// Another process may take it before the one that it is for does, which then says so.
inline uint16_t free_port() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), any, size) != 0 || getsockname(fd.get(), any, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "a free port on loopback");
  return ntohs(address.sin_port);
}

}  // namespace tierpilot::test
