#include "rpc/sockets.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace tierpilot {
namespace {

constexpr int kBacklog = 128;
constexpr mode_t kSocketMode = 0660;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // Address::parse bounds it
  return address;
}

// ok: the path is free now.
Status clear_stale_socket(const Address& address) {
  struct stat status {};
  if (::lstat(address.path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, "cannot listen on " + address.to_string());
  }
  if (!S_ISSOCK(status.st_mode))
    return fail(ErrorCode::kConflict,
                fmt::format("cannot listen on {}: a file that is not a socket is there",
                            address.to_string()));
  const auto probe = connect_unix(address);
  if (probe || probe.error().code == ErrorCode::kExhausted)
    return fail(
        ErrorCode::kConflict,
        fmt::format("cannot listen on {}: another process already does", address.to_string()));
  if (probe.error().code != ErrorCode::kUnreachable) return tl::unexpected(probe.error());
  if (::unlink(address.path.c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "cannot remove the stale socket " + address.path);
  return {};
}

Result<ListeningSocket> listen_unix(const Address& address) {
  if (auto status = clear_stale_socket(address); !status) return tl::unexpected(status.error());
  UniqueFd fd(::socket(AF_UNIX, kSocketFlags, 0));
  const sockaddr_un target = unix_address(address.path);
  // Nobody can connect between bind and listen, so the mode is right before it matters.
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0 ||
      ::chmod(address.path.c_str(), kSocketMode) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return fail_errno(errno, "cannot listen on " + address.to_string());
  struct stat file {};
  if (::lstat(address.path.c_str(), &file) != 0)
    return fail_errno(errno, "cannot listen on " + address.to_string());
  return ListeningSocket{std::move(fd), address, file.st_ino};
}

uint16_t bound_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

Result<UniqueFd> bind_tcp(const addrinfo& target) {
  UniqueFd fd(::socket(target.ai_family, kSocketFlags, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), target.ai_addr, target.ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return fail_errno(errno, "listen");
  return fd;
}

Result<ListeningSocket> listen_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failure =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (failure != 0)
    return fail(ErrorCode::kInvalid, fmt::format("cannot listen on {}: {}", address.to_string(),
                                                 ::gai_strerror(failure)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> targets(list, &::freeaddrinfo);
  Result<UniqueFd> fd = fail(ErrorCode::kUnavailable, "the host has no address");
  for (const addrinfo* target = list; target != nullptr && !fd; target = target->ai_next)
    fd = bind_tcp(*target);
  if (!fd)
    return fail(fd.error().code,
                fmt::format("cannot listen on {}: {}", address.to_string(), fd.error().message));
  Address bound = address;
  bound.port = bound_port(fd->get());
  return ListeningSocket{std::move(*fd), bound, 0};
}

}  // namespace

Result<ListeningSocket> listen_on(const Address& address) {
  return address.kind == Address::Kind::kUnix ? listen_unix(address) : listen_tcp(address);
}

Result<UniqueFd> connect_unix(const Address& address) {
  UniqueFd fd(::socket(AF_UNIX, kSocketFlags, 0));
  const sockaddr_un target = unix_address(address.path);
  if (fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0)
    return fd;
  const int error = errno;
  auto failure = fail_errno(error, "cannot connect to " + address.to_string());
  if (error == EAGAIN) failure.value().code = ErrorCode::kExhausted;
  if (error == ECONNREFUSED || error == ENOENT) failure.value().code = ErrorCode::kUnreachable;
  return failure;
}

void remove_socket_file(const ListeningSocket& socket) {
  struct stat file {};
  if (socket.address.kind == Address::Kind::kUnix &&
      ::lstat(socket.address.path.c_str(), &file) == 0 && file.st_ino == socket.inode)
    ::unlink(socket.address.path.c_str());
}

}  // namespace tierpilot
