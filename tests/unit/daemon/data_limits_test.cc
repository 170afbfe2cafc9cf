// What slow sources do to a data plane.
#include <gtest/gtest.h>

#include "rpc/node.capnp.h"
#include "rpc/server.h"
#include "tests/unit/daemon/data_fixture.h"

namespace tierpilot::agent {
namespace {

using DataLimits = DataFixture;

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

}  // namespace
}  // namespace tierpilot::agent
