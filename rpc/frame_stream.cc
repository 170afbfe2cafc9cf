#include "rpc/frame_stream.h"

#include <capnp/rpc.capnp.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

int64_t now_ns() {
  return system_clock().boot_ns();
}

// A Finish only lets the peer forget an answer (or a call that nobody waits for any more).
bool may_be_late(Segments segments) {
  capnp::SegmentArrayMessageReader message(segments);
  return message.getRoot<capnp::rpc::Message>().isFinish();
}

}  // namespace

FrameStream::FrameStream(EventLoop& loop, ByteStream& stream, const RpcLimits& limits,
                         bool pause_reading, OnFailure on_failure)
    : loop_(loop),
      stream_(stream),
      limits_(limits),
      pause_reading_(pause_reading),
      on_failure_(std::move(on_failure)),
      deadline_ns_(now_ns() + limits.handshake_timeout_ms * kNsPerMs) {}

capnp::ReaderOptions FrameStream::send_options() const {
  capnp::ReaderOptions options;
  // A little less than a frame: the check counts segments without their table.
  options.traversalLimitInWords = limits_.max_frame_bytes / sizeof(capnp::word) - 64;
  options.nestingLimit = limits_.nesting_limit;
  return options;
}

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> FrameStream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd>, capnp::ReaderOptions, kj::ArrayPtr<capnp::word>) {
  return kj::evalNow([this]() -> kj::Promise<Message> {
    if (pause_reading_ && stream_.queued_bytes() > limits_.pause_reading_bytes)
      return until_peer_reads().then([this] { return next_message(); });
    return next_message();
  });
}

kj::Promise<FrameStream::Message> FrameStream::next_message() {
  if (buffered_bytes() < kFrameHeaderBytes) return read_more();
  const auto words = parse_frame_header(buffer_.data() + begin_, limits_);
  if (!words) refuse(words.error());
  const size_t frame_bytes = kFrameHeaderBytes + *words * sizeof(capnp::word);
  if (buffered_bytes() < frame_bytes) return read_rest(*words);
  auto payload = kj::heapArray<capnp::word>(*words);
  std::memcpy(payload.begin(), buffer_.data() + begin_ + kFrameHeaderBytes,
              frame_bytes - kFrameHeaderBytes);
  begin_ += frame_bytes;
  return take(kj::mv(payload));
}

// Less than a header is buffered: the only place where a clean end of stream can be.
kj::Promise<FrameStream::Message> FrameStream::read_more() {
  const size_t kept = buffered_bytes();
  std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
  begin_ = 0;
  end_ = kept;
  return read(buffer_.data() + kept, 1, buffer_.size() - kept, kept > 0)
      .then([this, kept](size_t bytes) -> kj::Promise<Message> {
        end_ += bytes;
        if (bytes > 0) return next_message();
        if (kept > 0) refuse({ErrorCode::kInvalid, "bad frame: its header was cut off"});
        return Message(nullptr);
      });
}

// The frame ends beyond the buffer, or this is as much as has arrived: the rest goes straight to
// where it stays. Memory that the peer only announces is not touched, so it costs nothing yet.
kj::Promise<FrameStream::Message> FrameStream::read_rest(size_t payload_words) {
  auto payload = kj::heapArray<capnp::word>(payload_words);
  auto bytes = payload.asBytes();
  const size_t have = buffered_bytes() - kFrameHeaderBytes;
  const size_t rest = bytes.size() - have;
  std::memcpy(bytes.begin(), buffer_.data() + begin_ + kFrameHeaderBytes, have);
  begin_ = end_ = 0;
  return read(bytes.begin() + have, rest, rest, true)
      .then([this, rest, payload = kj::mv(payload)](size_t got) mutable -> Message {
        if (got < rest)
          refuse({ErrorCode::kInvalid,
                  fmt::format("bad frame: cut off {} bytes before its end", rest - got)});
        return take(kj::mv(payload));
      });
}

FrameStream::Message FrameStream::take(kj::Array<capnp::word> payload) {
  auto reader = open_frame(kj::mv(payload), limits_);
  if (!reader) refuse(reader.error());
  deadline_ns_ = 0;
  return capnp::MessageReaderAndFds{kj::mv(*reader), nullptr};
}

// Between frames a peer may be silent for ever; within one, and before the first, it may not.
kj::Promise<size_t> FrameStream::read(void* buffer, size_t min_bytes, size_t max_bytes,
                                      bool within_frame) {
  auto bytes = stream_.tryRead(buffer, min_bytes, max_bytes).catch_([this](kj::Exception&& lost) {
    on_failure_(to_error(lost));
    return kj::Promise<size_t>(kj::mv(lost));
  });
  if (within_frame && deadline_ns_ == 0)
    deadline_ns_ = now_ns() + limits_.frame_timeout_ms * kNsPerMs;
  if (deadline_ns_ == 0) return bytes;
  const int64_t left_ms = std::max<int64_t>(0, (deadline_ns_ - now_ns()) / kNsPerMs);
  return bytes.exclusiveJoin(loop_.after_ms(left_ms).then([this]() -> size_t {
    refuse({ErrorCode::kTimeout, "no complete frame arrived in time"});
  }));
}

// Not reading hides the end of the stream, so its closing is waited for as well.
kj::Promise<void> FrameStream::until_peer_reads() {
  return stream_.when_queued_below(limits_.pause_reading_bytes / 2)
      .exclusiveJoin(stream_.whenWriteDisconnected())
      .catch_([this](kj::Exception&& lost) {
        on_failure_(to_error(lost));
        kj::throwFatalException(kj::mv(lost));
      });
}

void FrameStream::refuse(Error error) {
  on_failure_(error);
  kj::throwFatalException(to_exception(error));
}

kj::Promise<void> FrameStream::writeMessage(kj::ArrayPtr<const int>, Segments segments) {
  const std::vector<uint32_t> prefix = frame_prefix(segments);
  kj::Vector<kj::ArrayPtr<const kj::byte>> pieces(1 + segments.size());
  pieces.add(kj::arrayPtr(reinterpret_cast<const kj::byte*>(prefix.data()),
                          prefix.size() * sizeof prefix[0]));
  for (const auto& segment : segments) pieces.add(segment.asBytes());
  return may_be_late(segments) ? stream_.write_late(pieces) : stream_.write(pieces);
}

kj::Promise<void> FrameStream::writeMessages(kj::ArrayPtr<Segments> messages) {
  kj::Promise<void> last = kj::READY_NOW;
  for (const auto& message : messages) last = writeMessage(nullptr, message);
  return last;
}

// Cap'n Proto takes it as the window of streaming calls.
kj::Maybe<int> FrameStream::getSendBufferSize() {
  return static_cast<int>(std::min<size_t>(limits_.pause_reading_bytes, INT_MAX));
}

kj::Promise<void> FrameStream::end() {
  stream_.shutdownWrite();
  return stream_.when_queued_below(1).exclusiveJoin(loop_.after_ms(ByteStream::kLingerMs));
}

}  // namespace tierpilot
