// ByteStream and FrameStream on a socket pair, the other end read and written by hand.
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>
#include <kj/debug.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/unique_fd.h"
#include "rpc/error.h"
#include "rpc/event_loop.h"
#include "rpc/stream/asio_types.h"
#include "rpc/stream/frame_stream.h"
#include "tests/rpc/echo.capnp.h"
#include "tests/rpc/raw_peer.h"
#include "tests/rpc/server_thread.h"

namespace tierpilot::test {
namespace {

class Stream : public testing::Test {
 protected:
  // KJ's members make it noexcept(false), which testing::Test is not.
  ~Stream() noexcept override = default;

  void open(const RpcLimits& limits = {}, int type = SOCK_STREAM) {
    int ends[2];
    KJ_SYSCALL(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends));
    peer_.reset(ends[1]);
    stream_ =
        make_stream(std::make_unique<PlainSocket>(
                        loop_.io(), boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[0]),
                    limits);
  }
  void write(const std::string& text) { stream_->write(text.data(), text.size()).wait(wait_); }
  // What the peer gets until the end of the stream, read on another thread while the loop runs.
  std::string peer_reads_all() {
    std::string all;
    std::thread reader([&] {
      char chunk[65536];
      for (ssize_t n; (n = ::recv(peer_.get(), chunk, sizeof chunk, 0)) > 0;)
        all.append(chunk, static_cast<size_t>(n));
      loop_.stop();
    });
    loop_.run();
    reader.join();
    return all;
  }
  void peer_sends(const std::string& text) {
    KJ_SYSCALL(::send(peer_.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }

  EventLoop loop_;
  kj::WaitScope& wait_ = loop_.wait_scope();
  UniqueFd peer_;
  kj::Own<ByteStream> stream_;
};

TEST_F(Stream, ReadWaitsForItsMinimum) {
  open();
  char buffer[16] = {};
  auto read = stream_->tryRead(buffer, 4, sizeof buffer);
  peer_sends("ab");
  EXPECT_FALSE(read.poll(wait_));
  peer_sends("cdef");
  EXPECT_EQ(read.wait(wait_), 6u);
  EXPECT_EQ(std::string(buffer), "abcdef");
  peer_sends("gh");
  peer_.reset();
  EXPECT_EQ(stream_->tryRead(buffer, 4, sizeof buffer).wait(wait_), 2u);
  EXPECT_EQ(stream_->tryRead(buffer, 4, sizeof buffer).wait(wait_), 0u);
}

TEST_F(Stream, LateBytesLeaveWithOthersOrALittleLaterAlone) {
  open();
  const auto write_late = [&](const std::string& text) {
    const auto piece = kj::StringPtr(text.c_str(), text.size()).asBytes();
    EXPECT_TRUE(stream_->put(kj::arrayPtr(&piece, 1), true) == nullptr);
  };
  const auto arrived = [&] {
    char chunk[64];
    const ssize_t bytes = ::recv(peer_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    return std::string(chunk, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  };
  write_late("a");
  write_late("b");
  EXPECT_EQ(stream_->queued_bytes(), 2u);
  write("c");
  stream_->when_queued_below(1).wait(wait_);
  EXPECT_EQ(arrived(), "abc");
  write_late("d");
  stream_->when_queued_below(1).wait(wait_);
  EXPECT_EQ(arrived(), "d");
  write_late("lost with the stream");
  stream_ = nullptr;
  EXPECT_EQ(peer_reads_all(), "");
}

TEST_F(Stream, DroppedReadLosesNothing) {
  open();
  char buffer[16] = {};
  {
    char gone[4];
    auto dropped = stream_->tryRead(gone, 4, 4);
    EXPECT_FALSE(dropped.poll(wait_));
  }
  peer_sends("abcdef");
  EXPECT_EQ(stream_->tryRead(buffer, 3, 3).wait(wait_), 3u);
  EXPECT_EQ(stream_->tryRead(buffer + 3, 3, 3).wait(wait_), 3u);
  EXPECT_EQ(std::string(buffer), "abcdef");
}

TEST_F(Stream, WritesOfOneTurnLeaveInOneSystemCall) {
  open({}, SOCK_SEQPACKET);  // keeps the boundaries of send()
  for (int i = 0; i < 100; ++i) write("0123456789");
  EXPECT_EQ(stream_->queued_bytes(), 1000u);
  stream_->when_queued_below(1).wait(wait_);
  char record[4096];
  EXPECT_EQ(::recv(peer_.get(), record, sizeof record, MSG_DONTWAIT), 1000);
  EXPECT_EQ(::recv(peer_.get(), record, sizeof record, MSG_DONTWAIT), -1);
}

TEST_F(Stream, ShutdownDoesNotOvertakeQueuedWrites) {
  open();
  std::string sent(8 << 20, 'q');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 >> 4);
  write(sent);
  stream_->shutdownWrite();
  EXPECT_EQ(peer_reads_all(), sent);
  // The other direction is still open.
  peer_sends("late");
  char buffer[4];
  EXPECT_EQ(stream_->tryRead(buffer, 4, 4).wait(wait_), 4u);
}

TEST_F(Stream, AcceptedWritesLeaveAfterTheStreamIsDropped) {
  open();
  const std::string sent(3 << 20, 'd');
  write(sent);
  stream_ = nullptr;
  EXPECT_EQ(peer_reads_all(), sent);
}

TEST_F(Stream, WriteDisconnectIsSeenWithoutReadingOrWriting) {
  open();
  auto disconnected = stream_->whenWriteDisconnected();
  auto again = stream_->whenWriteDisconnected();
  loop_.after_ms(20).wait(wait_);
  EXPECT_FALSE(disconnected.poll(wait_));
  peer_.reset();
  disconnected.wait(wait_);
  again.wait(wait_);
  stream_->whenWriteDisconnected().wait(wait_);
  EXPECT_TRUE(error_of([&] { write("x"); }));
}

TEST_F(Stream, HalfClosedPeerIsNoWriteDisconnect) {
  open();
  auto disconnected = stream_->whenWriteDisconnected();
  ::shutdown(peer_.get(), SHUT_WR);
  char byte;
  EXPECT_EQ(stream_->tryRead(&byte, 1, 1).wait(wait_), 0u);
  EXPECT_FALSE(disconnected.poll(wait_));
  write("still goes");
  stream_->when_queued_below(1).wait(wait_);
  char buffer[16] = {};
  EXPECT_EQ(::recv(peer_.get(), buffer, sizeof buffer, MSG_DONTWAIT), 10);
}

TEST_F(Stream, WriteDisconnectIsSeenByAFailedWrite) {
  open();
  peer_.reset();
  write("lost");
  stream_->whenWriteDisconnected().wait(wait_);
  const auto error = error_of([&] { write("more"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnreachable);
}

TEST_F(Stream, PeerThatDoesNotReadIsDroppedAtTheLimit) {
  RpcLimits limits;
  limits.drop_peer_bytes = 1 << 20;
  open(limits);
  const std::string piece(64 << 10, 'x');
  size_t most = 0;
  std::optional<Error> error;
  for (int i = 0; i < 100 && !error; ++i) {
    error = error_of([&] { write(piece); });
    most = std::max(most, stream_->queued_bytes());
  }
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("does not read"), std::string::npos);
  EXPECT_LE(most, limits.drop_peer_bytes);
  stream_->whenWriteDisconnected().wait(wait_);
}

TEST_F(Stream, PeerThatDoesNotReadIsDroppedAfterATime) {
  RpcLimits limits;
  limits.stall_bytes = 64 << 10;
  limits.write_stall_timeout_ms = 50;
  open(limits);
  write(std::string(4 << 20, 'x'));
  char byte;
  auto read = stream_->tryRead(&byte, 1, 1);
  EXPECT_TRUE(error_of([&] { stream_->when_queued_below(1).wait(wait_); }));
  const auto error = error_of([&] { read.wait(wait_); });
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("does not read"), std::string::npos);
}

// At most a fifth of what it has to take, of which the kernel asks for more several times.
TEST_F(Stream, PeerThatReadsNextToNothingIsDroppedAfterATime) {
  constexpr size_t kMost = 4 << 20, kPiece = 4 << 10;
  RpcLimits limits;
  limits.stall_bytes = 64 << 10;
  limits.write_stall_timeout_ms = 500;
  open(limits);
  write(std::string(32 << 20, 'x'));
  std::atomic<bool> dropped = false;
  size_t got = 0;
  std::thread reader([&] {
    char piece[kPiece];
    while (!dropped && got < kMost) {
      got += static_cast<size_t>(std::max<ssize_t>(::recv(peer_.get(), piece, kPiece, 0), 0));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  EXPECT_TRUE(error_of([&] { stream_->when_queued_below(1).wait(wait_); }));
  dropped = true;
  reader.join();
  EXPECT_LT(got, kMost);
}

TEST_F(Stream, SlowPeerIsNotDropped) {
  RpcLimits limits;
  limits.stall_bytes = 64 << 10;
  limits.write_stall_timeout_ms = 200;
  open(limits);
  write(std::string(2 << 20, 'x'));
  stream_->shutdownWrite();
  size_t got = 0;
  std::thread reader([&] {
    std::string chunk(128 << 10, 0);
    for (ssize_t n; (n = ::recv(peer_.get(), chunk.data(), chunk.size(), 0)) > 0;) {
      got += static_cast<size_t>(n);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    loop_.stop();
  });
  loop_.run();
  reader.join();
  EXPECT_EQ(got, size_t{2} << 20);
}

// ---- frames

std::string nested(int depth) {
  capnp::MallocMessageBuilder message;
  auto node = message.initRoot<Node>();
  for (int i = 1; i < depth; ++i) node = node.initNext();
  return frame_of(message);
}

class Frames : public Stream {
 protected:
  ~Frames() noexcept override = default;

  void open_frames(const RpcLimits& limits = {}, bool pause_reading = false) {
    open(limits);
    frames_ = std::make_unique<FrameStream>(loop_, *stream_, limits, pause_reading,
                                            [this](const Error& error) { failure_ = error; });
  }
  kj::Promise<FrameStream::Message> next() { return frames_->read(); }

  std::unique_ptr<FrameStream> frames_;
  std::optional<Error> failure_;
};

TEST_F(Frames, ManyFramesInOneReadAndOneFrameInManyReads) {
  open_frames();
  const std::string frame = nested(2);
  peer_sends(frame + frame + frame + frame.substr(0, 11));
  for (int i = 0; i < 3; ++i) {
    auto message = next().wait(wait_);
    EXPECT_TRUE(KJ_ASSERT_NONNULL(message)->getBody().getAs<Node>().hasNext());
  }
  auto last = next();
  for (size_t i = 11; i < frame.size(); ++i) {
    EXPECT_FALSE(last.poll(wait_));
    peer_sends(frame.substr(i, 1));
  }
  EXPECT_TRUE(last.wait(wait_) != nullptr);
  peer_.reset();
  EXPECT_TRUE(next().wait(wait_) == nullptr);
  EXPECT_FALSE(failure_);
}

TEST_F(Frames, ReadingEndsWithTheWriteThatFailedAlsoWithinAFrame) {
  for (const size_t begun : {size_t{0}, size_t{3}, size_t{11}}) {
    open_frames();
    peer_sends(nested(2).substr(0, begun));
    auto message = next();
    EXPECT_FALSE(message.poll(wait_));
    ::shutdown(peer_.get(), SHUT_RD);
    capnp::MallocMessageBuilder sent;
    sent.initRoot<Node>();
    for (int i = 0; i < 2; ++i) {
      frames_->write(sent.getSegmentsForOutput());
      loop_.after_ms(5).wait(wait_);
    }
    EXPECT_TRUE(error_of([&] { message.wait(wait_); })) << begun;
    ASSERT_TRUE(failure_) << begun;
    EXPECT_EQ(failure_->code, ErrorCode::kUnreachable) << begun << ": " << failure_->message;
    failure_.reset();
  }
}

TEST_F(Frames, EndWaitsUntilAllHasLeft) {
  open_frames();
  capnp::MallocMessageBuilder message;
  message.initRoot<Echo::BlobParams>().initData(3 << 20);
  frames_->write(message.getSegmentsForOutput());
  auto end = frames_->end();
  EXPECT_FALSE(end.poll(wait_));
  EXPECT_GT(peer_reads_all().size(), size_t{3} << 20);
  EXPECT_TRUE(end.poll(wait_));
}

TEST_F(Frames, PausesWhileThePeerDoesNotRead) {
  RpcLimits limits;
  limits.pause_reading_bytes = 256 << 10;
  open_frames(limits, true);
  write(std::string(2 << 20, 'x'));
  peer_sends(nested(1));
  auto message = next();
  loop_.after_ms(20).wait(wait_);
  EXPECT_FALSE(message.poll(wait_));
  stream_->shutdownWrite();
  peer_reads_all();
  EXPECT_TRUE(message.wait(wait_) != nullptr);
}

TEST_F(Frames, PausedReaderSeesThePeerGo) {
  RpcLimits limits;
  limits.pause_reading_bytes = 64 << 10;
  open_frames(limits, true);
  write(std::string(2 << 20, 'x'));
  loop_.after_ms(5).wait(wait_);
  auto message = next();
  EXPECT_FALSE(message.poll(wait_));
  peer_.reset();
  EXPECT_TRUE(error_of([&] { message.wait(wait_); }));
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->code, ErrorCode::kUnreachable);
}

TEST_F(Frames, TricklingFrameEndsInTime) {
  RpcLimits limits;
  limits.handshake_timeout_ms = 10'000;
  limits.frame_timeout_ms = 100;
  open_frames(limits);
  peer_sends(nested(1));
  EXPECT_TRUE(next().wait(wait_) != nullptr);
  auto message = next();
  EXPECT_FALSE(message.poll(wait_));
  const std::string frame = nested(3);
  size_t sent = 0;
  while (!message.poll(wait_) && sent < frame.size()) {
    peer_sends(frame.substr(sent++, 1));
    loop_.after_ms(30).wait(wait_);
  }
  EXPECT_LT(sent, frame.size());
  EXPECT_TRUE(error_of([&] { message.wait(wait_); }));
  EXPECT_EQ(failure_.value().code, ErrorCode::kTimeout);
}

TEST_F(Frames, SilenceBetweenFramesIsAllowed) {
  RpcLimits limits;
  limits.frame_timeout_ms = 1;
  limits.handshake_timeout_ms = 5'000;
  open_frames(limits);
  peer_sends(nested(1));
  EXPECT_TRUE(next().wait(wait_) != nullptr);
  auto message = next();
  loop_.after_ms(50).wait(wait_);
  EXPECT_FALSE(message.poll(wait_));
  peer_sends(nested(1));
  EXPECT_TRUE(message.wait(wait_) != nullptr);
}

}  // namespace
}  // namespace tierpilot::test
