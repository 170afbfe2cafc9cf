#include "daemon/exec/message_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace tierpilot {
namespace {

constexpr size_t kMaxWaitingBytes = 64 << 20;
constexpr int kSendBufferBytes = static_cast<int>(kMaxMessageBytes) + 4096;

bool would_block(int err) {
  return err == EAGAIN || err == ENOBUFS;
}

template <class Call>
ssize_t retrying(Call call) {
  ssize_t result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

tl::unexpected<Error> peer_gone() {
  return fail(ErrorCode::kUnreachable, "executor channel: the other end is closed");
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> MessageSocket::socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
    return fail_errno(errno, "executor channel: socketpair");
  for (const int fd : fds) {
    // A datagram must fit into the send buffer; the kernel caps what is asked at wmem_max.
    int bytes = 4 * static_cast<int>(kMaxMessageBytes);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    socklen_t size = sizeof bytes;
    if (::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size) < 0 || bytes < kSendBufferBytes)
      return fail(
          ErrorCode::kUnavailable,
          "executor channel: net.core.wmem_max is too small for messages of 256 KiB: set it "
          "to at least 212992, the kernel's default");
  }
  return std::pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

Status MessageSocket::send(const ExecMessage& message, bool urgent) {
  if (!socket_) return peer_gone();
  auto bytes = encode(message);
  if (!bytes) return tl::unexpected(bytes.error());
  if (waiting_bytes_ + bytes->size() > kMaxWaitingBytes)
    return fail(ErrorCode::kExhausted, "executor channel: 64 MiB of messages wait for the warden");
  waiting_bytes_ += bytes->size();
  if (urgent)
    waiting_.push_front(std::move(*bytes));
  else
    waiting_.push_back(std::move(*bytes));
  return flush();
}

Status MessageSocket::flush() {
  while (!waiting_.empty()) {
    const auto& next = waiting_.front();
    if (::send(socket_.get(), next.data(), next.size(), MSG_NOSIGNAL) < 0) {
      if (errno == EINTR) continue;
      if (would_block(errno)) return {};
      if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return peer_gone();
      return fail_errno(errno, "executor channel: send");
    }
    waiting_bytes_ -= next.size();
    waiting_.pop_front();
  }
  return {};
}

Result<std::optional<ExecMessage>> MessageSocket::receive() {
  if (!socket_) return peer_gone();
  // A message is never empty, so a size of 0 is the end of the stream.
  const ssize_t size = retrying([&] { return ::recv(fd(), nullptr, 0, MSG_PEEK | MSG_TRUNC); });
  if (size < 0 && would_block(errno)) return std::nullopt;
  if (size <= 0) return peer_gone();
  std::vector<uint8_t> bytes(std::min<size_t>(static_cast<size_t>(size), kMaxMessageBytes + 1));
  const ssize_t got = retrying([&] { return ::recv(fd(), bytes.data(), bytes.size(), 0); });
  if (got <= 0) return peer_gone();
  return decode(bytes);
}

void MessageSocket::close() {
  socket_.reset();
  waiting_.clear();
  waiting_bytes_ = 0;
}

}  // namespace tierpilot
