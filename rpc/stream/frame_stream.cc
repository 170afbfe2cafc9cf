#include "rpc/stream/frame_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
// Of a large frame, how much is waited for at a time.
constexpr size_t kStepBytes = 64 * 1024;

int64_t now_ns() {
  return system_clock().boot_ns();
}

// These only let the peer forget an answer (or a call that nobody waits for any more) and
// capabilities, or leave with the end of the stream that follows.
bool may_be_late(capnp::rpc::Message::Reader root) {
  return root.isFinish() || root.isRelease() || root.isAbort();
}

class Incoming final : public capnp::IncomingRpcMessage {
 public:
  explicit Incoming(kj::Own<capnp::MessageReader> message) : message_(kj::mv(message)) {}

  capnp::AnyPointer::Reader getBody() override { return message_->getRoot<capnp::AnyPointer>(); }
  size_t sizeInWords() override { return message_->sizeInWords(); }

 private:
  kj::Own<capnp::MessageReader> message_;
};

}  // namespace

class FrameStream::Reading final : public ByteStream::Sink, public FrameMemory::Claim::Owner {
 public:
  Reading(kj::PromiseFulfiller<Message>& fulfiller, FrameStream& frames)
      : fulfiller_(fulfiller), frames_(frames) {
    ask();
  }
  ~Reading() {
    if (waits_) frames_.stream_.stop_filling();
  }

  void filled(size_t bytes) override {
    waits_ = false;
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { arrived(bytes); })) {
      fulfiller_.reject(kj::mv(*exception));
    }
  }
  void lost(kj::Exception&& why) override {
    waits_ = false;
    frames_.on_failure_(to_error(why));
    fulfiller_.reject(kj::mv(why));
    claim_.reset();
  }

  void granted() override {
    if (frames_.deadline_ns_ > 0) frames_.deadline_ns_ += now_ns() - claimed_ns_;
    read_rest();
  }
  void stalled() override {
    give_up({ErrorCode::kTimeout,
             fmt::format("{} bytes of a frame of {} are missing, of which "
                         "nothing came for {} ms, and others wait",
                         rest_, payload_.asBytes().size(), frames_.limits_.frame_stall_ms)});
  }

 private:
  void ask() {
    if (frames_.buffered_bytes() >= kFrameHeaderBytes)
      ask_for_rest();
    else
      ask_for_more();
  }

  // Less than a header is buffered: the only place where a clean end of stream can be.
  void ask_for_more() {
    auto& buffer = frames_.buffer_;
    const size_t kept = frames_.buffered_bytes();
    std::memmove(buffer.data(), buffer.data() + frames_.begin_, kept);
    frames_.begin_ = 0;
    frames_.end_ = kept;
    watch_deadline(kept > 0);
    waits_ = true;
    frames_.stream_.fill(buffer.data() + kept, 1, buffer.size() - kept, *this);
  }

  // The frame ends beyond the buffer, or this is as much as has arrived.
  void ask_for_rest() {
    const size_t bytes = frame_words() * sizeof(capnp::word);
    if (!frames_.use_ || bytes <= frames_.buffer_.size()) return read_rest();
    claimed_ns_ = now_ns();
    deadline_ = nullptr;  // how long it waits for memory is not the peer's fault
    watches_ = false;
    claim_.emplace(frames_.use_->memory,
                   std::shared_ptr<FrameMemory::OfPeer>(frames_.use_, &frames_.use_->frames), bytes,
                   *this);
  }

  // It goes straight to where it stays.
  void read_rest() {
    payload_ = kj::heapArray<capnp::word>(frame_words());
    const kj::byte* frame = frames_.buffer_.data() + frames_.begin_;
    const size_t have = frames_.buffered_bytes() - kFrameHeaderBytes;
    std::memcpy(payload_.asBytes().begin(), frame + kFrameHeaderBytes, have);
    rest_ = payload_.asBytes().size() - have;
    frames_.begin_ = frames_.end_ = 0;
    watch_deadline(true);
    read_step();
  }

  void read_step() {
    waits_ = true;
    frames_.stream_.fill(payload_.asBytes().end() - rest_, std::min(rest_, kStepBytes), rest_,
                         *this);
  }

  size_t frame_words() const {
    return *parse_frame_header(frames_.buffer_.data() + frames_.begin_, frames_.limits_);
  }

  void arrived(size_t bytes) {
    if (bytes < std::clamp<size_t>(rest_, 1, kStepBytes)) return ended(bytes);
    if (rest_ > 0) return rest_arrived(bytes);
    frames_.end_ += bytes;
    Message message;
    if (!frames_.take_buffered(message)) return ask();
    fulfiller_.fulfill(kj::mv(message));
  }

  void rest_arrived(size_t bytes) {
    rest_ -= bytes;
    if (rest_ > 0) {
      if (claim_) claim_->came_on();
      return read_step();
    }
    claim_.reset();
    fulfiller_.fulfill(frames_.take(kj::mv(payload_)));
  }

  void ended(size_t bytes) {
    KJ_IF_MAYBE (failure, frames_.write_failure_) {
      return lost(kj::cp(*failure));
    }
    if (rest_ > 0)
      frames_.refuse({ErrorCode::kInvalid,
                      fmt::format("bad frame: cut off {} bytes before its end", rest_ - bytes)});
    if (frames_.buffered_bytes() > 0)
      frames_.refuse({ErrorCode::kInvalid, "bad frame: its header was cut off"});
    fulfiller_.fulfill(nullptr);
  }

  // Between frames a peer may be silent for ever; within one, and before the first, it may not.
  void watch_deadline(bool within_frame) {
    int64_t& deadline_ns = frames_.deadline_ns_;
    if (within_frame && deadline_ns == 0)
      deadline_ns = now_ns() + frames_.limits_.frame_timeout_ms * kNsPerMs;
    if (deadline_ns == 0 || std::exchange(watches_, true)) return;
    const int64_t left_ms = std::max<int64_t>(0, (deadline_ns - now_ns()) / kNsPerMs);
    deadline_ = frames_.loop_.after_ms(left_ms)
                    .then([this] {
                      give_up({ErrorCode::kTimeout, "no complete frame arrived in time"});
                    })
                    .eagerlyEvaluate(nullptr);
  }

  void give_up(const Error& error) {
    if (!std::exchange(waits_, false)) return;
    frames_.stream_.stop_filling();
    frames_.on_failure_(error);
    fulfiller_.reject(to_exception(error));
    claim_.reset();
  }

  kj::PromiseFulfiller<Message>& fulfiller_;
  FrameStream& frames_;
  std::optional<FrameMemory::Claim> claim_;  // of a large frame
  int64_t claimed_ns_ = 0;
  kj::Array<capnp::word> payload_;  // of a frame whose rest is read
  size_t rest_ = 0;                 // its bytes; 0: whole frames are read into the buffer
  bool waits_ = false;              // for the stream
  bool watches_ = false;
  kj::Promise<void> deadline_ = nullptr;
};

FrameStream::FrameStream(EventLoop& loop, ByteStream& stream, const RpcLimits& limits,
                         bool pause_reading, OnFailure on_failure, std::shared_ptr<PeerUse> use)
    : loop_(loop),
      stream_(stream),
      limits_(limits),
      pause_reading_(pause_reading),
      on_failure_(std::move(on_failure)),
      use_(std::move(use)),
      questions_(use_ ? std::shared_ptr<PeerQuestions>(use_, &use_->questions) : nullptr),
      used_ns_(now_ns()),
      deadline_ns_(now_ns() + limits.handshake_timeout_ms * kNsPerMs) {}

// A little less than a frame: the check counts segments without their table.
uint64_t FrameStream::max_message_words() const {
  return limits_.max_frame_bytes / sizeof(capnp::word) - 64;
}

kj::Promise<FrameStream::Message> FrameStream::read() {
  return kj::evalNow([this]() -> kj::Promise<Message> {
    if (pause_reading_ && stream_.queued_bytes() > limits_.pause_reading_bytes)
      return until_peer_reads().then([this] { return next_message(); });
    return next_message();
  });
}

kj::Promise<FrameStream::Message> FrameStream::next_message() {
  Message message;
  if (take_buffered(message)) return kj::mv(message);
  return kj::newAdaptedPromise<Message, Reading>(*this);
}

bool FrameStream::take_buffered(Message& message) {
  if (buffered_bytes() < kFrameHeaderBytes) return false;
  const auto words = parse_frame_header(buffer_.data() + begin_, limits_);
  if (!words) refuse(words.error());
  const size_t frame_bytes = kFrameHeaderBytes + *words * sizeof(capnp::word);
  if (buffered_bytes() < frame_bytes) return false;
  auto payload = kj::heapArray<capnp::word>(*words);
  std::memcpy(payload.begin(), buffer_.data() + begin_ + kFrameHeaderBytes,
              frame_bytes - kFrameHeaderBytes);
  begin_ += frame_bytes;
  message = take(kj::mv(payload));
  return true;
}

FrameStream::Message FrameStream::take(kj::Array<capnp::word> payload) {
  auto reader = open_frame(kj::mv(payload), limits_);
  if (!reader) refuse(reader.error());
  deadline_ns_ = 0;
  const auto message = (*reader)->getRoot<capnp::rpc::Message>();
  // Of others the library keeps the results until they are taken elsewhere, for ever.
  if (message.isCall() && !message.getCall().getSendResultsTo().isCaller())
    refuse({ErrorCode::kInvalid, "bad frame: a call's results go back to its caller only"});
  if (limits_.spare_idle_ms > 0) count_calls(message);
  count_questions(message);
  return kj::Own<capnp::IncomingRpcMessage>(kj::heap<Incoming>(kj::mv(*reader)));
}

void FrameStream::count_calls(capnp::rpc::Message::Reader message) {
  const bool answer = message.isReturn();
  if (!answer && !message.isCall() && !message.isBootstrap()) return;
  used_ns_ = now_ns();
  if (!answer)
    ++unanswered_calls_;
  else if (unanswered_calls_ > 0)
    --unanswered_calls_;
}

void FrameStream::count_questions(capnp::rpc::Message::Reader message) {
  questions_.received(message);
  if (questions_.count() > limits_.max_open_questions)
    refuse({ErrorCode::kExhausted,
            fmt::format("{} questions are open on the connection, whose answers were never let go "
                        "of: the limit is {}",
                        questions_.count(), limits_.max_open_questions)});
}

std::optional<int64_t> FrameStream::idle_since_ns() const {
  if (limits_.spare_idle_ms <= 0 || unanswered_calls_ > 0 || stream_.queued_bytes() > 0)
    return std::nullopt;
  return used_ns_;
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

void FrameStream::write(Segments segments) {
  const std::vector<uint32_t> prefix = frame_prefix(segments);
  kj::Vector<kj::ArrayPtr<const kj::byte>> pieces(1 + segments.size());
  pieces.add(kj::arrayPtr(reinterpret_cast<const kj::byte*>(prefix.data()),
                          prefix.size() * sizeof prefix[0]));
  for (const auto& segment : segments) pieces.add(segment.asBytes());
  capnp::SegmentArrayMessageReader message(segments);
  const auto root = message.getRoot<capnp::rpc::Message>();
  if (limits_.spare_idle_ms > 0) count_calls(root);
  questions_.sent(root);
  KJ_IF_MAYBE (failure, stream_.put(pieces, may_be_late(root))) {
    if (write_failure_ != nullptr) return;
    write_failure_ = kj::mv(*failure);
    stream_.abortRead();
  }
}

kj::Promise<void> FrameStream::end() {
  return kj::evalLater([this] {
    stream_.shutdownWrite();
    return stream_.when_queued_below(1).exclusiveJoin(loop_.after_ms(ByteStream::kLingerMs));
  });
}

}  // namespace tierpilot
