// What a peer's questions keep here: each one until it is answered and the peer lets go of the
// answer, and each capability that an answer gave it until the peer releases that.
#pragma once

#include <capnp/rpc.capnp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace tierpilot {

// Of all connections of one peer to a server.
struct PeerQuestions {
  size_t count = 0;
  size_t most = SIZE_MAX;
  // Told each time that there are too many, while a message is read: it must not end a connection.
  std::function<void()> on_excess;
};

class OpenQuestions {
 public:
  explicit OpenQuestions(std::shared_ptr<PeerQuestions> of_peer = nullptr);
  ~OpenQuestions();
  OpenQuestions(const OpenQuestions&) = delete;

  void received(capnp::rpc::Message::Reader message);
  void sent(capnp::rpc::Message::Reader message);
  size_t count() const { return count_; }

 private:
  void asked(uint32_t question);
  void answered(capnp::rpc::Return::Reader answer);
  void let_go(capnp::rpc::Finish::Reader finish);
  void add(size_t more);
  void remove(size_t fewer);

  const std::shared_ptr<PeerQuestions> of_peer_;
  size_t count_ = 0;
  // Not answered yet: whether the peer has let go already, which it may say more than once.
  std::unordered_map<uint32_t, bool> unanswered_;
  std::unordered_map<uint32_t, size_t> given_;  // capabilities, by answers that are kept
};

}  // namespace tierpilot
