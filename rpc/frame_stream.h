// Messages over a ByteStream, for capnp::TwoPartyVatNetwork.
#pragma once

#include <capnp/serialize-async.h>

#include <array>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "rpc/byte_stream.h"
#include "rpc/event_loop.h"
#include "rpc/frame.h"
#include "rpc/limits.h"

namespace tierpilot {

class FrameStream final : public capnp::MessageStream {
 public:
  // Told once why reading ended, unless by a clean end of stream: kUnreachable when the connection
  // broke, anything else when a frame was refused.
  using OnFailure = std::function<void(const Error&)>;

  // `pause_reading`: wait with the next message while the peer leaves pause_reading_bytes of ours
  // unread. For servers only: if both sides did it they could wait for each other.
  FrameStream(EventLoop& loop, ByteStream& stream, const RpcLimits& limits, bool pause_reading,
              OnFailure on_failure);

  // What Cap'n Proto's own size check before sending must use, so that a message that is too large
  // fails its call and not the connection.
  capnp::ReaderOptions send_options() const;

  // `options` and `scratch_space` are ignored: RpcLimits rule, and a message owns its memory.
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch_space) override;
  // Descriptors do not travel; `fds` is ignored.
  kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds, Segments segments) override;
  kj::Promise<void> writeMessages(kj::ArrayPtr<Segments> messages) override;
  kj::Maybe<int> getSendBufferSize() override;
  // Resolves when all that was written has left (or the peer did not take it in time).
  kj::Promise<void> end() override;

 private:
  using Message = kj::Maybe<capnp::MessageReaderAndFds>;

  kj::Promise<Message> next_message();
  kj::Promise<Message> read_more();
  kj::Promise<Message> read_rest(size_t payload_words);
  Message take(kj::Array<capnp::word> payload);
  kj::Promise<void> until_peer_reads();
  kj::Promise<size_t> read(void* buffer, size_t min_bytes, size_t max_bytes, bool within_frame);
  [[noreturn]] void refuse(Error error);

  size_t buffered_bytes() const { return end_ - begin_; }

  EventLoop& loop_;
  ByteStream& stream_;
  const RpcLimits limits_;
  const bool pause_reading_;
  OnFailure on_failure_;
  int64_t deadline_ns_;  // of the frame being read; 0 between frames
  // Read in one go, so it usually holds many small frames.
  std::array<kj::byte, 32 * 1024> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace tierpilot
