#include "daemon/exec/message_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tierpilot {
namespace {

constexpr size_t kMaxWaitingBytes = 64 << 20;
constexpr int kSendBufferBytes = static_cast<int>(kMaxMessageBytes) + 4096;

bool would_block(int err) {
  return err == EAGAIN || err == ENOBUFS;
}

// Once, before what the other end said, the kernel tells that it is gone and left messages unread.
template <class Call>
ssize_t reading(Call call) {
  ssize_t result;
  do {
    result = call();
  } while (result < 0 && (errno == EINTR || errno == ECONNRESET));
  return result;
}

// Room for the control message of one descriptor, aligned as it must be.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))];
};

// `attached`: -1 for none.
ssize_t send_with(int socket, const std::vector<uint8_t>& bytes, int attached) {
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (attached >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof attached);
    std::memcpy(CMSG_DATA(header), &attached, sizeof attached);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t receive_with(int socket, std::vector<uint8_t>& bytes, UniqueFd& attached) {
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    attached.reset(fd);
  }
  return got;
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

Status MessageSocket::send(const ExecMessage& message, UniqueFd attached, bool urgent) {
  if (!socket_) return peer_gone();
  auto bytes = encode(message);
  if (!bytes) return tl::unexpected(bytes.error());
  if (waiting_bytes_ + bytes->size() > kMaxWaitingBytes)
    return fail(ErrorCode::kExhausted, "executor channel: 64 MiB of messages wait for the warden");
  waiting_bytes_ += bytes->size();
  if (urgent)
    waiting_.push_front({std::move(*bytes), std::move(attached)});
  else
    waiting_.push_back({std::move(*bytes), std::move(attached)});
  return flush();
}

Status MessageSocket::flush() {
  while (!waiting_.empty()) {
    const auto& next = waiting_.front();
    if (send_with(socket_.get(), next.bytes, next.attached.get()) < 0) {
      if (errno == EINTR) continue;
      if (would_block(errno)) return {};
      if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return peer_gone();
      return fail_errno(errno, "executor channel: send");
    }
    waiting_bytes_ -= next.bytes.size();
    waiting_.pop_front();
  }
  return {};
}

Result<std::optional<ExecMessage>> MessageSocket::receive(UniqueFd* attached) {
  if (!socket_) return peer_gone();
  // A message is never empty, so a size of 0 is the end of the stream.
  const ssize_t size = reading([&] { return ::recv(fd(), nullptr, 0, MSG_PEEK | MSG_TRUNC); });
  if (size < 0 && would_block(errno)) return std::nullopt;
  if (size <= 0) return peer_gone();
  std::vector<uint8_t> bytes(std::min<size_t>(static_cast<size_t>(size), kMaxMessageBytes + 1));
  UniqueFd came;
  const ssize_t got = reading([&] { return receive_with(fd(), bytes, came); });
  if (got <= 0) return peer_gone();
  if (attached) *attached = std::move(came);
  return decode(bytes);
}

void MessageSocket::close() {
  socket_.reset();
  waiting_.clear();
  waiting_bytes_ = 0;
}

}  // namespace tierpilot
