// What many readers, slow sources and readers that take nothing do to a data plane.
#include <gtest/gtest.h>

#include <latch>
#include <list>

#include "base/descriptors.h"
#include "rpc/client.h"
#include "rpc/digest.h"
#include "rpc/node.capnp.h"
#include "rpc/server.h"
#include "tests/unit/daemon/data_fixture.h"

namespace tierpilot::agent {
namespace {

using DataLimits = DataFixture;

TEST_F(DataLimits, ManyIdleReadersKeepNobodyFromReading) {
  constexpr size_t kIdle = 300;
  if (raise_descriptor_limit() < 4 * kIdle) GTEST_SKIP() << "too few descriptors are allowed";
  serve();  // by the limit of now
  create("d", 1000);
  std::vector<kj::Own<RpcConnection>> idle;
  for (size_t i = 0; i < kIdle; ++i)
    loop.detach(RpcConnection::connect(loop, {.path = root / "data.sock"}, nullptr)
                    .then([&](kj::Own<RpcConnection> made) { idle.push_back(kj::mv(made)); }),
                "connecting");
  EXPECT_TRUE(comes_true([&] { return idle.size() == kIdle; })) << idle.size();
  beside_the_loop([&] {
    const auto got = read_all("d", 1000);
    EXPECT_TRUE(got) << got.error().message;
  });
}

// Answers no read before it is told to.
class SlowSource final : public wire::DataSource::Server {
 public:
  struct Reads {
    size_t asked = 0, dropped = 0;
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  };
  explicit SlowSource(Reads& reads) : reads_(reads) {}

 private:
  kj::Promise<void> read(ReadContext context) override {
    context.allowCancellation();
    ++reads_.asked;
    auto paf = kj::newPromiseAndFulfiller<void>();
    reads_.waiting.push_back(kj::mv(paf.fulfiller));
    return paf.promise
        .then(
            [context]() mutable { context.getResults().setData(kj::StringPtr("slow").asBytes()); })
        .attach(kj::defer([&reads = reads_] { ++reads.dropped; }));
  }

  Reads& reads_;
};

class SlowSources : public DataLimits {
 protected:
  static constexpr int64_t kSweepMs = 20;

  void SetUp() override {
    DataLimits::SetUp();
    if (!pool) return;
    slow = RpcServer::listen(loop, {.path = root / "slow.sock"}, nullptr, {},
                             [this](const Peer&, const auto&) {
                               return wire::DataSource::Client(kj::heap<SlowSource>(reads));
                             })
               .value();
  }
  void TearDown() override {
    fetcher.reset();
    slow.reset();
    DataLimits::TearDown();
  }
  void fetch_with_patience(int64_t patience_ms) {
    fetcher = std::make_unique<RemoteFetcher>(loop, nullptr, patience_ms, kSweepMs);
  }
  Result<size_t> read_slowly() {
    std::vector<std::byte> into(100);
    return fetcher->read(slow->address().to_string(), {"d", 1}, 0, into);
  }
  // While which many sweeps find the stream unused.
  kj::Promise<void> many_sweeps() { return loop.after_ms(20 * kSweepMs); }

  SlowSource::Reads reads;
  std::unique_ptr<RpcServer> slow;
};

TEST_F(SlowSources, AReadThatTakesLongIsAnswered) {
  fetch_with_patience(5'000);
  loop.detach(many_sweeps().then([this] {
    for (auto& each : reads.waiting) each->fulfill();
  }),
              "the slow answer");
  beside_the_loop([&] {
    const auto got = read_slowly();
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, 4u);
  });
  EXPECT_EQ(reads.asked, 1u);
}

TEST_F(SlowSources, AReadThatNobodyWaitsForAnyMoreIsDropped) {
  fetch_with_patience(50);
  beside_the_loop([&] { EXPECT_EQ(read_slowly().error().code, ErrorCode::kTimeout); });
  EXPECT_TRUE(comes_true([&] { return reads.asked == 1 && reads.dropped == 1; }));
}

// Clients that ask for much and take nothing.
class DeafReaders : public DataLimits {
 protected:
  static constexpr size_t kDeaf = 6, kReads = 60, kBytes = 1 << 20;

  void TearDown() override {
    hang_up();
    DataLimits::TearDown();
  }
  void ask_for_much() {
    create("d", kBytes);
    for (size_t i = 0; i < kDeaf; ++i) deaf.emplace_back([this] { ask(); });
    ASSERT_TRUE(comes_true([&] { return connected.try_wait(); }));
    // This loop stands still meanwhile, so that they get no answer while they still listen.
    go.count_down();
    asked.wait();
  }
  void hang_up() {
    if (deaf.empty()) return;
    if (!go.try_wait()) go.count_down();
    end.count_down();
    for (auto& each : deaf) each.join();
    deaf.clear();
  }
  Result<std::vector<std::byte>> read_beside() {
    Result<std::vector<std::byte>> got;
    beside_the_loop([&] { got = read_all("d", kBytes); });
    return got;
  }

 private:
  void ask() {
    EventLoop own;
    auto connection =
        RpcConnection::connect(own, {.path = root / "data.sock"}, nullptr).wait(own.wait_scope());
    connected.count_down();
    go.wait();
    auto source = connection->bootstrap().castAs<wire::DataSource>();
    std::vector<kj::Promise<void>> calls;
    for (size_t i = 0; i < kReads; ++i) {
      auto request = source.readRequest();
      request.setDataset("d");
      request.setVersion(ids["d"].version);
      write_digest(request.initDigest(), ids["d"].digest);
      request.setMaxBytes(kBytes);
      calls.push_back(request.send().ignoreResult());
    }
    own.after_ms(100).wait(own.wait_scope());  // they leave
    asked.count_down();
    end.wait();
  }

  std::latch connected{kDeaf}, go{1}, asked{kDeaf}, end{1};
  std::list<std::thread> deaf;
};

TEST_F(DeafReaders, HaveOnlyTheirOwnRoom) {
  constexpr size_t kEach = AnswerRoom::Limits{}.connection_bytes;
  ask_for_much();
  EXPECT_TRUE(comes_true([&] { return server->unsent_bytes() > kDeaf * (kEach - kBytes); }));
  for (int i = 0; i < 20; ++i) {
    const auto got = read_beside();
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->size(), kBytes);
  }
  EXPECT_LT(server->unsent_bytes(), kDeaf * (kEach + 2 * kBytes));
}

TEST_F(DeafReaders, FillNoMoreThanTheRoomOfAll) {
  constexpr size_t kAll = 8 << 20;
  serve({.all_bytes = kAll, .patience_ms = 2'000});
  ask_for_much();
  EXPECT_TRUE(comes_true([&] { return server->unsent_bytes() >= kAll; }));
  // Busy and not broken, for those who fetch.
  EXPECT_EQ(read_beside().error().code, ErrorCode::kExhausted);
  EXPECT_LT(server->unsent_bytes(), kAll + 2 * kBytes);
  hang_up();
  EXPECT_TRUE(comes_true([&] { return server->unsent_bytes() < kAll / 2; }));
  const auto got = read_beside();
  EXPECT_TRUE(got) << got.error().message;
}

}  // namespace
}  // namespace tierpilot::agent
