#include "tests/rpc/raw_peer.h"

#include <kj/debug.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "rpc/stream/frame.h"
#include "tests/rpc/echo.capnp.h"

namespace tierpilot::test {
namespace {

// A call of the capability that question 0 will return.
capnp::rpc::Payload::Builder start_call(capnp::MessageBuilder& message, uint32_t question,
                                        uint16_t method) {
  auto call = message.initRoot<capnp::rpc::Message>().initCall();
  call.setQuestionId(question);
  call.initTarget().initPromisedAnswer().setQuestionId(0);
  call.setInterfaceId(capnp::typeId<Echo>());
  call.setMethodId(method);
  return call.initParams();
}

}  // namespace

std::string frame_of(capnp::MessageBuilder& message) {
  const auto segments = message.getSegmentsForOutput();
  const auto prefix = frame_prefix(segments);
  std::string frame(reinterpret_cast<const char*>(prefix.data()), prefix.size() * sizeof prefix[0]);
  for (const auto& segment : segments)
    frame.append(segment.asChars().begin(), segment.asChars().size());
  return frame;
}

std::string bootstrap_frame() {
  capnp::MallocMessageBuilder message;
  message.initRoot<capnp::rpc::Message>().initBootstrap().setQuestionId(0);
  return frame_of(message);
}

std::string echo_frame(uint32_t question, const std::string& text) {
  capnp::MallocMessageBuilder message;
  start_call(message, question, 0).initContent().initAs<Echo::EchoParams>().setText(text);
  return frame_of(message);
}

std::string make_frame(uint32_t question, uint32_t size) {
  capnp::MallocMessageBuilder message;
  start_call(message, question, 2).initContent().initAs<Echo::MakeParams>().setSize(size);
  return frame_of(message);
}

std::string never_frame(uint32_t question) {
  capnp::MallocMessageBuilder message;
  start_call(message, question, 5).initContent().initAs<Echo::NeverParams>();
  return frame_of(message);
}

std::string finish_frame(uint32_t question) {
  capnp::MallocMessageBuilder message;
  message.initRoot<capnp::rpc::Message>().initFinish().setQuestionId(question);
  return frame_of(message);
}

RawPeer::RawPeer(const Address& address) {
  if (address.kind == Address::Kind::kUnix) {
    fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un target{};
    target.sun_family = AF_UNIX;
    std::memcpy(target.sun_path, address.path.data(), address.path.size());
    KJ_SYSCALL(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&target), sizeof target));
  } else {
    fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_port = htons(address.port);
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    KJ_SYSCALL(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&target), sizeof target));
  }
}

bool RawPeer::send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

void RawPeer::send_what_fits(const std::string& bytes) {
  constexpr int kMoment_ms = 50;
  pollfd ready{fd_.get(), POLLOUT, 0};
  for (size_t sent = 0; sent < bytes.size() && ::poll(&ready, 1, kMoment_ms) > 0;) {
    const ssize_t n =
        ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

void RawPeer::finish_sending() {
  ::shutdown(fd_.get(), SHUT_WR);
}

ssize_t RawPeer::receive(int timeout_ms) {
  pollfd ready{fd_.get(), POLLIN, 0};
  if (::poll(&ready, 1, timeout_ms) <= 0) return -1;
  char chunk[65536];
  return std::max<ssize_t>(0, ::recv(fd_.get(), chunk, sizeof chunk, 0));
}

bool RawPeer::is_closed_by_peer() {
  for (;;) {
    const ssize_t n = receive();
    if (n <= 0) return n == 0;
  }
}

}  // namespace tierpilot::test
