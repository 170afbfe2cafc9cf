// Messages over a ByteStream, for PeerNetwork.
#pragma once

#include <capnp/rpc.capnp.h>
#include <capnp/rpc.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "rpc/event_loop.h"
#include "rpc/limits.h"
#include "rpc/stream/byte_stream.h"
#include "rpc/stream/frame.h"
#include "rpc/stream/peer_use.h"

namespace tierpilot {

class FrameStream {
 public:
  using Message = kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>;
  // Told once why reading ended, unless by a clean end of stream: kUnreachable when the connection
  // broke, anything else when a frame was refused.
  using OnFailure = std::function<void(const Error&)>;

  // `pause_reading`: wait with the next message while the peer leaves pause_reading_bytes of ours
  // unread. For servers only: if both sides did it they could wait for each other.
  // `use`: what the peer has open at this server, if it is one.
  FrameStream(EventLoop& loop, ByteStream& stream, const RpcLimits& limits, bool pause_reading,
              OnFailure on_failure, std::shared_ptr<PeerUse> use = nullptr);

  // Null: the stream has ended cleanly. One at a time.
  kj::Promise<Message> read();
  // Copied before it returns. A failure is told by the next read() that finds no message: nobody
  // looks at writes. Not after end(). Must not be larger than max_message_words().
  void write(Segments segments);
  // Resolves when all that was written has left (or the peer did not take it in time). Dropped at
  // once, as when a Session goes, it does nothing.
  kj::Promise<void> end();

  // Since when every call is answered and has left; none: not now, or spare_idle_ms is not set.
  std::optional<int64_t> idle_since_ns() const;

  // Of the peer, see OpenQuestions.
  size_t open_questions() const { return questions_.count(); }
  uint64_t max_message_words() const;
  // Of streaming calls.
  size_t window_bytes() const { return limits_.pause_reading_bytes; }

 private:
  class Reading;  // a read() that has to wait for bytes

  kj::Promise<Message> next_message();
  // False: no whole frame is buffered.
  bool take_buffered(Message& message);
  Message take(kj::Array<capnp::word> payload);
  kj::Promise<void> until_peer_reads();
  void count_calls(capnp::rpc::Message::Reader message);
  void count_questions(capnp::rpc::Message::Reader message);
  [[noreturn]] void refuse(Error error);

  size_t buffered_bytes() const { return end_ - begin_; }

  EventLoop& loop_;
  ByteStream& stream_;
  const RpcLimits limits_;
  const bool pause_reading_;
  OnFailure on_failure_;
  const std::shared_ptr<PeerUse> use_;
  OpenQuestions questions_;
  kj::Maybe<kj::Exception> write_failure_;
  uint64_t unanswered_calls_ = 0;  // of both sides
  int64_t used_ns_;
  int64_t deadline_ns_;  // of the frame being read; 0 between frames
  // Read in one go, so it usually holds many small frames.
  std::array<kj::byte, 32 * 1024> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace tierpilot
