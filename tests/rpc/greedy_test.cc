// Peers that keep to the protocol and let a server keep as much for them as they can.
#include <gtest/gtest.h>

#include <deque>

#include "tests/rpc/raw_peer.h"
#include "tests/rpc/server_thread.h"

namespace tierpilot::test {
namespace {

class Greedy : public testing::Test {
 protected:
  // KJ's members make it noexcept(false), which testing::Test is not.
  ~Greedy() noexcept override = default;

  void serve(const RpcLimits& limits) {
    server_.emplace(folder_.socket_address(), std::nullopt, limits);
    bystander_ = connect(loop_, server_->address());
  }
  static bool asks(RawPeer& peer, uint32_t first, uint32_t count) {
    std::string calls;
    for (uint32_t question = first; question < first + count; ++question)
      calls += echo_frame(question, "x");
    return peer.send(calls);
  }
  bool bystander_is_well() { return echo(loop_, echo_of(*bystander_), "well") == "well"; }

  TemporaryFolder folder_;
  std::optional<ServerThread> server_;
  EventLoop loop_;
  kj::Own<RpcConnection> bystander_;
};

TEST_F(Greedy, WhoLetsGoOfNoAnswerIsDropped) {
  RpcLimits limits;
  limits.max_open_questions = 1'000;
  serve(limits);
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.send(bootstrap_frame()));
  ASSERT_TRUE(asks(peer, 1, 998));  // beside the first question, and the capability it gave
  while (peer.receive(200) > 0) continue;
  EXPECT_EQ(server_->connections(), 2u) << "as many as may be";
  asks(peer, 999, 1);
  EXPECT_TRUE(peer.is_closed_by_peer());
  EXPECT_EQ(server_->rejected_frames(), 1u);
  EXPECT_TRUE(bystander_is_well());
}

TEST_F(Greedy, WhoLetsGoOfAnswersMayAskForEver) {
  RpcLimits limits;
  limits.max_open_questions = limits.max_open_questions_of_peer = 200;
  serve(limits);
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(bystander_is_well());
  for (int round = 0; round < 10; ++round) {
    auto calls = kj::heapArrayBuilder<kj::Promise<void>>(100);
    for (int i = 0; i < 100; ++i)
      calls.add(echo_of(*bystander_).echoRequest().send().ignoreResult());
    kj::joinPromises(calls.finish()).wait(loop_.wait_scope());
  }
  for (int i = 0; i < 1'000; ++i)
    echo(loop_, echo_of(*bystander_).childRequest().send().getEcho(), "of a capability");
  for (int i = 0; i < 1'000; ++i) auto given_up = echo_of(*bystander_).childRequest().send();
  EXPECT_TRUE(bystander_is_well());
  EXPECT_EQ(server_->rejected_frames(), 0u);
}

// What it said of calls that go on is no answer that was let go of.
TEST_F(Greedy, ACallThatGoesOnCountsHoweverOftenItIsGivenUp) {
  RpcLimits limits;
  limits.max_open_questions = 100;
  serve(limits);
  RawPeer peer(server_->address());
  std::string said = bootstrap_frame();
  for (uint32_t question = 1; question <= 100; ++question)
    said += never_frame(question) + finish_frame(question) + finish_frame(question);
  peer.send(said);
  EXPECT_TRUE(peer.is_closed_by_peer());
  EXPECT_TRUE(bystander_is_well());
}

TEST_F(Greedy, OfOnePeerTheConnectionThatHoldsMostIsDropped) {
  RpcLimits limits;
  limits.max_open_questions_of_peer = 1'000;
  serve(limits);
  RawPeer most(server_->address()), less(server_->address());
  most.send(bootstrap_frame());
  less.send(bootstrap_frame());
  ASSERT_TRUE(asks(most, 1, 600));
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.connections() == 3; }));
  ASSERT_TRUE(asks(less, 1, 500));
  EXPECT_TRUE(most.is_closed_by_peer());
  EXPECT_TRUE(bystander_is_well());
  EXPECT_EQ(server_->connections(), 2u);
  ASSERT_TRUE(asks(less, 501, 300));
  EXPECT_TRUE(bystander_is_well());
}

// ---- frames that have only begun

std::string large_frame(uint32_t question, size_t bytes) {
  return echo_frame(question, std::string(bytes, 'x'));
}

TEST_F(Greedy, FramesThatHaveOnlyBegunCostBoundedMemory) {
  RpcLimits limits;
  limits.max_begun_bytes = 32 << 20;
  limits.frame_stall_ms = 60'000;
  serve(limits);
  const std::string begun = large_frame(1, 3 << 20).substr(0, 2 << 20);
  const size_t before = resident_bytes();
  std::deque<RawPeer> peers;
  for (int i = 0; i < 60; ++i) {
    peers.emplace_back(server_->address());
    peers.back().send_what_fits(bootstrap_frame() + begun);
    EXPECT_TRUE(bystander_is_well());
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // What is freed, and shadows of memory, are resident too.
  constexpr size_t kTimes = 3;
#else
  constexpr size_t kTimes = 1;
#endif
  EXPECT_LT(resident_bytes() - before, kTimes * (size_t{32} << 20)) << "of 120 MiB that were sent";
}

TEST_F(Greedy, WhoHoldsMemoryThatOthersWaitForHasToComeOn) {
  RpcLimits limits;
  limits.max_begun_bytes = 8 << 20;  // of which one peer gets half
  limits.frame_stall_ms = 100;
  serve(limits);
  RawPeer silent(server_->address());
  silent.send_what_fits(bootstrap_frame() + large_frame(1, 3 << 20).substr(0, 1 << 20));
  loop_.after_ms(500).wait(loop_.wait_scope());
  EXPECT_EQ(server_->rejected_frames(), 0u) << "nobody waits";
  EXPECT_EQ(echo(loop_, echo_of(*bystander_), std::string(2 << 20, 'y')).size(), size_t{2} << 20);
  EXPECT_TRUE(silent.is_closed_by_peer());
  EXPECT_EQ(server_->rejected_frames(), 1u);
}

// Many more than there is memory for at once, and slow ones.
TEST_F(Greedy, HonestLargeFramesAllComeThrough) {
  constexpr size_t kPeers = 24, kBytes = 1 << 20;
  RpcLimits limits;
  limits.max_begun_bytes = 4 << 20;
  limits.frame_stall_ms = 20'000;
  serve(limits);
  std::vector<kj::Own<RpcConnection>> peers;
  for (size_t i = 0; i < kPeers; ++i) peers.push_back(connect(loop_, server_->address()));
  RawPeer slow(server_->address());
  slow.send(bootstrap_frame());
  std::thread trickle([&] {
    const std::string frame = large_frame(1, kBytes);
    for (size_t at = 0; at < frame.size(); at += 64 << 10) {
      EXPECT_TRUE(slow.send(frame.substr(at, 64 << 10)));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  for (int round = 0; round < 2; ++round) {
    auto calls = kj::heapArrayBuilder<kj::Promise<void>>(kPeers);
    for (auto& peer : peers) {
      auto request = echo_of(*peer).echoRequest();
      request.setText(std::string(kBytes, 'y'));
      calls.add(request.send().ignoreResult());
    }
    kj::joinPromises(calls.finish()).wait(loop_.wait_scope());
  }
  trickle.join();
  EXPECT_GE(slow.receive(), 0);
  EXPECT_EQ(server_->rejected_frames(), 0u);
  EXPECT_EQ(server_->connections(), kPeers + 2);
}

}  // namespace
}  // namespace tierpilot::test
