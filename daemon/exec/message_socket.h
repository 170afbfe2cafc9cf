// A message socket (AF_UNIX, SOCK_SEQPACKET) that never blocks: what does not fit waits in memory.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/exec/messages.h"

namespace tierpilot {

class MessageSocket {
 public:
  static Result<std::pair<UniqueFd, UniqueFd>> socket_pair();

  explicit MessageSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  // Sends, or queues behind what waits already (`urgent`: before it). kInvalid when the message is
  // too large, kExhausted when 64 MiB wait, kUnreachable when the peer is gone.
  Status send(const ExecMessage& message, bool urgent = false) {
    return send(message, UniqueFd(), urgent);
  }
  // With a descriptor that the peer gets too.
  Status send(const ExecMessage& message, UniqueFd attached, bool urgent = false);
  Status flush();
  // True: call flush() when fd() is writable.
  bool backlog() const { return !waiting_.empty(); }

  // nullopt: nothing there now. kUnreachable: the peer is gone and everything it sent was read.
  // kInvalid: that one message was malformed; the next may be read. `attached` gets a descriptor
  // that came with it; without one it is closed.
  Result<std::optional<ExecMessage>> receive(UniqueFd* attached = nullptr);

  int fd() const { return socket_.get(); }
  void close();

 private:
  struct Waiting {
    std::vector<uint8_t> bytes;
    UniqueFd attached;
  };

  UniqueFd socket_;
  std::deque<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
};

}  // namespace tierpilot
