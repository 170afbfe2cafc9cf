// Peers that do not keep to the protocol lose their own connection and nothing else.
#include <gtest/gtest.h>

#include <random>

#include "tests/rpc/raw_peer.h"
#include "tests/rpc/server_thread.h"

namespace tierpilot::test {
namespace {

std::string u32s(std::initializer_list<uint32_t> values) {
  std::string bytes;
  for (const uint32_t value : values)
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

constexpr uint32_t kMagic = 0x31465054;

// A struct pointer in each word that leads to the next word.
std::string deep_frame(uint32_t words) {
  std::string frame = u32s({kMagic, 8 * (words + 1), 0, words});
  for (uint32_t i = 0; i + 1 < words; ++i) frame += u32s({0, 1u << 16});
  return frame + u32s({0, 0});
}

// A list of structs, all of whose pointers lead to one large list: small here, vast when walked.
std::string amplifying_frame() {
  constexpr uint32_t kPointers = 30'000;
  const uint32_t words = 1 + kPointers + 20'000;
  std::string frame = u32s({kMagic, 8 * (words + 1), 0, words});
  frame += u32s({1, kPointers << 3 | 6});  // a list of pointers, right behind
  for (uint32_t i = 0; i < kPointers; ++i)
    frame += u32s({(kPointers - 1 - i) << 2 | 1, 20'000u << 3 | 5});
  frame.append(20'000 * 8, '\0');
  return frame;
}

struct Garbage {
  const char* name;
  std::string bytes;
  bool ends = false;  // the peer finishes sending
};

std::vector<Garbage> garbage() {
  const std::string good = bootstrap_frame();
  return {
      {"http", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"unframed capnp", good.substr(8) + good.substr(8)},
      {"zeros", std::string(64, '\0')},
      {"ones", std::string(64, '\xff')},
      {"zero length", u32s({kMagic, 0})},
      {"odd length", u32s({kMagic, 13}) + std::string(13, 'x')},
      {"length over the limit", u32s({kMagic, (4 << 20) + 8})},
      {"largest length", u32s({kMagic, 0xfffffff8})},
      {"segment count FFFFFFFF", u32s({kMagic, 16, 0xffffffff, 0, 0, 0})},
      {"segment count FFFFFFFE", u32s({kMagic, 16, 0xfffffffe, 0, 0, 0})},
      {"segment count over the limit",
       u32s({kMagic, 8 * 301, 599}) + std::string(301 * 8 - 4, '\0')},
      {"segment table beyond the frame", u32s({kMagic, 8, 7, 1})},
      {"segment larger than the frame", u32s({kMagic, 16, 0, 900, 0, 0})},
      {"segment of FFFFFFFF words", u32s({kMagic, 16, 0, 0xffffffff, 0, 0})},
      {"segment smaller than the frame", u32s({kMagic, 24, 0, 1, 0, 0, 0, 0})},
      {"root pointer out of bounds", u32s({kMagic, 16, 0, 1, 0x7ffffffc, 0xffffffff})},
      {"far pointer to nowhere", u32s({kMagic, 16, 0, 1, 0x00000002, 77})},
      {"garbage words", u32s({kMagic, 24, 0, 2, 0xdeadbeef, 0xcafef00d, 0x12345678, 0x9abcdef0})},
      {"list with an impossible tag",
       u32s({kMagic, 24, 0, 2, 1, 1 << 3 | 7, 0xfffffffc, 0xffffffff})},
      {"nested 40 deep", deep_frame(40)},
      {"nested 100,000 deep", deep_frame(100'000)},
      {"amplifying", amplifying_frame()},
      {"truncated header", good.substr(0, 5), true},
      {"truncated payload", good.substr(0, good.size() - 3), true},
      {"good frame, then garbage", good + "garbage garbage"},
  };
}

class Hostile : public testing::Test {
 protected:
  // KJ's members make it noexcept(false), which testing::Test is not.
  ~Hostile() noexcept override = default;

  TemporaryFolder folder_;
  ServerThread server_{folder_.socket_address()};
  EventLoop loop_;
  kj::Own<RpcConnection> bystander_ = connect(loop_, server_.address());
};

TEST_F(Hostile, EachKindOfGarbageClosesItsConnectionAndIsCounted) {
  uint64_t rejected = 0;
  for (const Garbage& kind : garbage()) {
    SCOPED_TRACE(kind.name);
    RawPeer peer(server_.address());
    peer.send(kind.bytes);
    if (kind.ends) peer.finish_sending();
    EXPECT_TRUE(peer.is_closed_by_peer());
    EXPECT_EQ(server_.rejected_frames(), ++rejected);
    EXPECT_EQ(echo(loop_, echo_of(*bystander_), kind.name), kind.name);
  }
  EXPECT_TRUE(server_.comes_true([](ServerThread& server) { return server.connections() == 1; }));
}

TEST_F(Hostile, WellFormedFramesOfTheWrongProtocolEndTheConnection) {
  capnp::MallocMessageBuilder message;
  auto call = message.initRoot<capnp::rpc::Message>().initCall();
  call.setQuestionId(1);
  call.initTarget().setImportedCap(4'000'000'000);
  RawPeer peer(server_.address());
  peer.send(frame_of(message));
  EXPECT_TRUE(peer.is_closed_by_peer());
  EXPECT_EQ(echo(loop_, echo_of(*bystander_), "x"), "x");
}

// Their results would be kept for ever, each at least some KiB.
TEST_F(Hostile, ACallWhoseResultsShallStayEndsTheConnection) {
  capnp::MallocMessageBuilder message;
  auto call = message.initRoot<capnp::rpc::Message>().initCall();
  call.setQuestionId(1);
  call.initTarget().initPromisedAnswer().setQuestionId(0);
  call.getSendResultsTo().setYourself();
  RawPeer peer(server_.address());
  peer.send(bootstrap_frame() + frame_of(message));
  EXPECT_TRUE(peer.is_closed_by_peer());
  EXPECT_EQ(server_.rejected_frames(), 1u);
  EXPECT_EQ(echo(loop_, echo_of(*bystander_), "x"), "x");
}

TEST_F(Hostile, CleanCloseIsNotABadFrame) {
  for (int i = 0; i < 10; ++i) {
    RawPeer peer(server_.address());
    peer.send(bootstrap_frame());
    peer.finish_sending();
    EXPECT_TRUE(peer.is_closed_by_peer());
  }
  EXPECT_EQ(server_.rejected_frames(), 0u);
}

TEST_F(Hostile, RandomlyChangedFramesNeverHarmTheServer) {
  std::mt19937 random(20'240'229);
  const std::vector<std::string> originals = {
      bootstrap_frame(), bootstrap_frame() + echo_frame(1, "a text to be changed"),
      bootstrap_frame() + make_frame(1, 100), bootstrap_frame() + echo_frame(0, "question again")};
  const auto below = [&](size_t bound) { return random() % bound; };
  for (int round = 0; round < 4'000; ++round) {
    std::string bytes = originals[below(originals.size())];
    // Keep the frame header whole most of the time, else nothing behind it is ever looked at.
    const size_t first = round % 8 == 0 ? 0 : 8;
    for (size_t changes = 1 + below(6); changes > 0; --changes) {
      const size_t at = first + below(bytes.size() - first);
      bytes[at] = static_cast<char>(below(2) ? random() : bytes[at] ^ 1 << below(8));
    }
    if (below(10) == 0) bytes.resize(1 + below(bytes.size()));
    RawPeer peer(server_.address());
    peer.send(bytes);
    peer.finish_sending();
    if (round % 16 == 0) {
      EXPECT_TRUE(peer.is_closed_by_peer()) << round;
    }
    if (round % 500 == 0) {
      EXPECT_EQ(echo(loop_, echo_of(*bystander_), "well"), "well");
    }
  }
  EXPECT_GT(server_.rejected_frames(), 100u);
  EXPECT_TRUE(server_.comes_true([](ServerThread& server) { return server.connections() == 1; }));
  EXPECT_EQ(echo(loop_, echo_of(*bystander_), "well"), "well");
}

TEST(SlowPeer, SilenceAndPartialFramesEndWithTheHandshakeTimeout) {
  TemporaryFolder folder;
  RpcLimits limits;
  limits.handshake_timeout_ms = 150;
  ServerThread server(folder.socket_address(), {}, limits);
  const std::string frame = bootstrap_frame();
  for (const size_t bytes : {size_t{0}, size_t{3}, size_t{8}, frame.size() - 1}) {
    RawPeer peer(server.address());
    peer.send(frame.substr(0, bytes));
    EXPECT_TRUE(peer.is_closed_by_peer()) << bytes;
  }
  EXPECT_EQ(server.rejected_frames(), 4u);
}

TEST(SlowPeer, OneThatNeverReadsCostsBoundedMemoryAndIsDropped) {
  TemporaryFolder folder;
  RpcLimits limits;
  limits.pause_reading_bytes = 1 << 20;
  limits.stall_bytes = 1 << 20;
  limits.write_stall_timeout_ms = 1'000;
  ServerThread server(folder.socket_address(), {}, limits);
  EventLoop loop;
  auto bystander = connect(loop, server.address());
  const size_t before = resident_bytes();
  RawPeer peer(server.address());
  ASSERT_TRUE(peer.send(bootstrap_frame()));
  size_t most = before;
  // Answers of 400 MiB; only the first few may be made.
  bool open = true;
  for (uint32_t question = 1; question <= 400 && open; ++question) {
    open = peer.send(make_frame(question, 1 << 20));
    most = std::max(most, resident_bytes());
    EXPECT_EQ(echo(loop, echo_of(*bystander), "x"), "x");
  }
  EXPECT_TRUE(server.comes_true([&](ServerThread& s) {
    most = std::max(most, resident_bytes());
    return s.connections() == 1;
  }));
  EXPECT_LT(most - before, size_t{100} << 20);
  EXPECT_EQ(echo(loop, echo_of(*bystander), "x"), "x");
}

}  // namespace
}  // namespace tierpilot::test
