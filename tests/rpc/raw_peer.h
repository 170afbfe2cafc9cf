// A peer that speaks whatever it likes: frames built by hand and a socket without a protocol.
#pragma once

#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "rpc/address.h"

namespace tierpilot::test {

std::string frame_of(capnp::MessageBuilder& message);
// Question 0: the server's bootstrap capability, which later frames call.
std::string bootstrap_frame();
std::string echo_frame(uint32_t question, const std::string& text);
std::string make_frame(uint32_t question, uint32_t size);
// Answered never.
std::string never_frame(uint32_t question);
// Lets go of an answer.
std::string finish_frame(uint32_t question);

class RawPeer {
 public:
  // Blocking, with a receive timeout far beyond what any test needs.
  explicit RawPeer(const Address& address);
  // false when the peer has closed.
  bool send(const std::string& bytes);
  // What the kernel takes within a moment.
  void send_what_fits(const std::string& bytes);
  void finish_sending();
  // Bytes of one read; 0 when the peer has closed or reset, -1 when nothing came for `timeout_ms`.
  ssize_t receive(int timeout_ms = 20'000);
  // Whether the peer closes; what it still says is skipped.
  bool is_closed_by_peer();

 private:
  UniqueFd fd_;
};

// Takes one connection on that port of this machine, and ends it without a word.
class ClosingListener {
 public:
  explicit ClosingListener(uint16_t port)
      : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), port}), thread_([this] {
          boost::system::error_code ignored;
          acceptor_.accept(ignored);
        }) {}
  ~ClosingListener() { thread_.join(); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace tierpilot::test
