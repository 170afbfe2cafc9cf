// What callers of the RPC may rely on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "rpc/error.h"
#include "tests/rpc/echo_server.h"
#include "tests/rpc/server_thread.h"

namespace tierpilot::test {
namespace {

class Calls : public testing::Test {
 protected:
  // KJ's members make it noexcept(false), which testing::Test is not.
  ~Calls() noexcept override = default;

  TemporaryFolder folder_;
  ServerThread server_{folder_.socket_address()};
  EventLoop loop_;
  kj::WaitScope& wait_ = loop_.wait_scope();
  kj::Own<RpcConnection> connection_ = connect(loop_, server_.address());
  Echo::Client client_ = echo_of(*connection_);
};

TEST_F(Calls, EchoReturnsTheText) {
  EXPECT_EQ(echo(loop_, client_, "hello"), "hello");
}

TEST_F(Calls, UnixPeerIsKnownByItsCredentials) {
  auto peer = client_.peerRequest().send().wait(wait_);
  EXPECT_EQ(std::string(peer.getTransport().cStr()), "unix");
  EXPECT_EQ(peer.getUid(), static_cast<int64_t>(::getuid()));
  EXPECT_EQ(peer.getPid(), static_cast<int64_t>(::getpid()));
  EXPECT_EQ(std::string(peer.getName().cStr()), "uid " + std::to_string(::getuid()));
  EXPECT_EQ(connection_->peer().uid, ::getuid());
}

TEST_F(Calls, PipelinedCallsNeedNoWaitBetween) {
  auto deepest = client_.childRequest().send().getEcho();
  for (int i = 0; i < 20; ++i) deepest = deepest.childRequest().send().getEcho();
  EXPECT_EQ(echo(loop_, deepest, "from the 21st child"), "from the 21st child");
}

TEST_F(Calls, TenThousandCallsAtOnceAnswerInOrder) {
  constexpr int kCalls = 10'000;
  int answered = 0;
  bool in_order = true;
  auto calls = kj::heapArrayBuilder<kj::Promise<void>>(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    auto request = client_.echoRequest();
    request.setText(kj::str(i));
    calls.add(request.send().then([&, i](capnp::Response<Echo::EchoResults> response) {
      in_order = in_order && response.getText() == kj::str(i) && answered == i;
      ++answered;
    }));
  }
  kj::joinPromises(calls.finish()).wait(wait_);
  EXPECT_EQ(answered, kCalls);
  EXPECT_TRUE(in_order);
}

TEST_F(Calls, LargePayloadsArriveWhole) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{40'000}, size_t{1} << 20, size_t{4'000'000}}) {
    auto request = client_.blobRequest();
    auto data = request.initData(static_cast<kj::uint>(size));
    for (size_t i = 0; i < size; ++i) data[i] = static_cast<kj::byte>(i * 31 >> 3);
    const std::vector<kj::byte> sent(data.begin(), data.end());
    auto response = request.send().wait(wait_);
    // Read thrice: a payload may be looked at more than once within the traversal limit.
    for (int look = 0; look < 3; ++look) ASSERT_EQ(response.getData().size(), size);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), response.getData().begin())) << size;
  }
}

TEST_F(Calls, TooLargeMessageFailsItsCallOnly) {
  auto request = client_.blobRequest();
  request.initData(5 << 20);
  auto error = error_of([&] { request.send().wait(wait_); });
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("larger than our single-message size limit"), std::string::npos);

  auto large_answer = client_.makeRequest();
  large_answer.setSize(5 << 20);
  EXPECT_TRUE(error_of([&] { large_answer.send().wait(wait_); }));
  EXPECT_EQ(echo(loop_, client_, "still here"), "still here");
  EXPECT_EQ(server_.rejected_frames(), 0u);
}

class Adder final : public Listener::Server {
 public:
  explicit Adder(int& events) : events_(events) {}
  kj::Promise<void> event(EventContext context) override {
    ++events_;
    context.getResults().setNumber(2 * context.getParams().getNumber());
    return kj::READY_NOW;
  }

 private:
  int& events_;
};

TEST_F(Calls, ServerCallsBackIntoTheClient) {
  int events = 0;
  auto request = client_.notifyRequest();
  request.setListener(kj::heap<Adder>(events));
  request.setCount(100);
  EXPECT_EQ(request.send().wait(wait_).getSum(), 2u * (99 * 100 / 2));
  EXPECT_EQ(events, 100);
}

TEST_F(Calls, ErrorsKeepTheirCodeAndMessage) {
  for (const ErrorCode code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict,
                               ErrorCode::kUnavailable, ErrorCode::kUnreachable, ErrorCode::kDenied,
                               ErrorCode::kExhausted, ErrorCode::kIo, ErrorCode::kTimeout}) {
    auto request = client_.failRequest();
    request.setCode(std::string(error_code_name(code)));
    request.setMessage("dataset 'genes' [x] is not what it was");
    const auto error = error_of([&] { request.send().wait(wait_); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, code);
    EXPECT_EQ(error->message, "dataset 'genes' [x] is not what it was");
  }
  EXPECT_EQ(echo(loop_, client_, "after errors"), "after errors");
}

TEST_F(Calls, UnknownMethodIsUnavailable) {
  auto request = connection_->bootstrap().typelessRequest(0x1234, 7, nullptr);
  const auto error = error_of([&] { request.send().wait(wait_); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnavailable);
}

TEST_F(Calls, DroppedClientLeavesTheServer) {
  auto unanswered = client_.neverRequest().send();
  EXPECT_EQ(echo(loop_, client_, "x"), "x");
  EXPECT_EQ(server_.connections(), 1u);
  connection_ = nullptr;
  const auto error = error_of([&] { unanswered.wait(wait_); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnreachable);
  EXPECT_TRUE(server_.comes_true([](ServerThread& server) { return server.connections() == 0; }));
  EXPECT_EQ(server_.rejected_frames(), 0u);
}

TEST_F(Calls, CancelledCallLeavesTheConnection) {
  { auto dropped = client_.neverRequest().send(); }
  EXPECT_EQ(echo(loop_, client_, "still here"), "still here");
}

TEST(Disconnect, ServerThatGoesFailsTheCallInFlight) {
  TemporaryFolder folder;
  auto server = std::make_unique<ServerThread>(folder.socket_address());
  EventLoop loop;
  auto connection = connect(loop, server->address());
  auto unanswered = echo_of(*connection).neverRequest().send();
  EXPECT_EQ(echo(loop, echo_of(*connection), "x"), "x");
  server = nullptr;
  const auto error = error_of([&] { unanswered.wait(loop.wait_scope()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnreachable);
  connection->on_disconnect().wait(loop.wait_scope());
  EXPECT_FALSE(std::filesystem::exists(folder.socket_address().path));
}

TEST(Disconnect, ServerAndClientMayShareALoop) {
  TemporaryFolder folder;
  EventLoop loop;
  auto server = value_or_throw(RpcServer::listen(
      loop, folder.socket_address(), {}, {},
      [](const Peer& peer, const auto&) { return Echo::Client(kj::heap<EchoServer>(peer)); }));
  auto connection = connect(loop, server->address());
  EXPECT_EQ(echo(loop, echo_of(*connection), "one loop"), "one loop");
  auto unanswered = echo_of(*connection).neverRequest().send();
  server = nullptr;
  EXPECT_TRUE(error_of([&] { unanswered.wait(loop.wait_scope()); }));
}

TEST(Listen, NobodyThereIsUnreachable) {
  TemporaryFolder folder;
  EventLoop loop;
  const auto error = error_of([&] { connect(loop, folder.socket_address()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnreachable);
  EXPECT_NE(error->message.find(folder.socket_address().to_string()), std::string::npos);
}

TEST(Listen, ConnectionLimitRefusesTheNext) {
  TemporaryFolder folder;
  RpcLimits limits;
  limits.max_connections = 2;
  ServerThread server(folder.socket_address(), {}, limits);
  EventLoop loop;
  auto first = connect(loop, server.address());
  auto second = connect(loop, server.address());
  const auto error = error_of([&] { connect(loop, server.address()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnreachable);
  EXPECT_EQ(server.rejected_peers(), 1u);
  second = nullptr;
  ASSERT_TRUE(server.comes_true([](ServerThread& s) { return s.connections() == 1; }));
  auto third = connect(loop, server.address());
  EXPECT_EQ(echo(loop, echo_of(*first), "first"), "first");
  EXPECT_EQ(echo(loop, echo_of(*third), "third"), "third");
}

TEST(Listen, AtTheConnectionLimitTheLongestIdleMakesRoom) {
  TemporaryFolder folder;
  RpcLimits limits;
  limits.max_connections = 3;
  limits.spare_idle_ms = 1;
  ServerThread server(folder.socket_address(), {}, limits);
  EventLoop loop;
  auto busy = connect(loop, server.address());
  auto unanswered = echo_of(*busy).neverRequest().send();
  auto used = connect(loop, server.address());
  auto idle = connect(loop, server.address());
  EXPECT_EQ(echo(loop, echo_of(*busy), "busy"), "busy");
  EXPECT_EQ(echo(loop, echo_of(*used), "used"), "used");
  loop.after_ms(20).wait(loop.wait_scope());
  auto next = connect(loop, server.address());
  EXPECT_EQ(echo(loop, echo_of(*next), "next"), "next");
  idle->on_disconnect().wait(loop.wait_scope());
  EXPECT_EQ(echo(loop, echo_of(*used), "used"), "used");
  EXPECT_EQ(echo(loop, echo_of(*busy), "busy"), "busy");
  EXPECT_EQ(server.connections(), 3u);
  EXPECT_EQ(server.rejected_peers(), 0u);
}

TEST(Listen, BusyConnectionsMakeNoRoom) {
  TemporaryFolder folder;
  RpcLimits limits;
  limits.max_connections = 1;
  limits.spare_idle_ms = 1;
  ServerThread server(folder.socket_address(), {}, limits);
  EventLoop loop;
  auto busy = connect(loop, server.address());
  auto unanswered = echo_of(*busy).neverRequest().send();
  EXPECT_EQ(echo(loop, echo_of(*busy), "busy"), "busy");
  loop.after_ms(20).wait(loop.wait_scope());
  EXPECT_TRUE(error_of([&] { connect(loop, server.address()); }));
  EXPECT_EQ(echo(loop, echo_of(*busy), "busy"), "busy");
}

TEST(Listen, BootstrapMayRefuseAPeer) {
  TemporaryFolder folder;
  ServerThread server(folder.socket_address(), {}, {},
                      [](const Peer&, const auto&) -> capnp::Capability::Client {
                        kj::throwFatalException(to_exception({ErrorCode::kDenied, "not you"}));
                      });
  EventLoop loop;
  const auto error = error_of([&] { connect(loop, server.address()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kDenied);
  EXPECT_NE(error->message.find("not you"), std::string::npos);
  EXPECT_EQ(server.rejected_peers(), 1u);
}

}  // namespace
}  // namespace tierpilot::test
