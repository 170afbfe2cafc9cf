#include "daemon/memory/pool/remote.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/unique_fd.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

class RemoteTest : public ::testing::Test {
 protected:
  Status run(uint64_t bytes, const std::vector<std::string>& sources) {
    const DatasetId id{"genes", 1, wanted};
    auto turn = fetch(remote, sources, id, bytes, file.get(), cancel);
    return turn ? Status{} : tl::unexpected(turn.error());
  }
  std::string fetched(size_t bytes) {
    std::string out(bytes, '\0');
    EXPECT_EQ(::pread(file.get(), out.data(), bytes, 0), static_cast<ssize_t>(bytes));
    return out;
  }

  // All but the tests about wrong bytes have them of one kind.
  ContentDigest wanted = {};
  FakeRemote remote;
  UniqueFd file{::memfd_create("fetch", 0)};
  CancelFlag cancel{false};
};

TEST_F(RemoteTest, TakesTheFirstSourceThatWorks) {
  const auto data = content(3 * kMiB + 17, 'a');
  wanted = digest_of(data);
  remote.put("b", "genes", 1, data);
  remote.put("c", "genes", 1, data);
  ASSERT_TRUE(run(data.size(), {"dead", "b", "c"}));
  EXPECT_EQ(fetched(data.size()), data);
  EXPECT_EQ(remote.reads["dead"], 1);
  EXPECT_EQ(remote.reads["c"], 0);
}

TEST_F(RemoteTest, ShortReadsGoOn) {
  const auto data = content(100 * kKiB + 1, 'a');
  wanted = digest_of(data);
  remote.put("a", "genes", 1, data);
  remote.max_bytes = 1000;
  ASSERT_TRUE(run(data.size(), {"a"}));
  EXPECT_EQ(fetched(data.size()), data);
}

TEST_F(RemoteTest, NextSourceGoesOnWhereTheLastBroke) {
  const auto data = content(4 * kMiB, 'a');
  wanted = digest_of(data);
  remote.put("breaks", "genes", 1, data);
  remote.put("b", "genes", 1, data);
  remote.fail_from["breaks"] = 3 * kMiB;
  ASSERT_TRUE(run(data.size(), {"breaks", "b"}));
  EXPECT_EQ(fetched(data.size()), data);
  EXPECT_EQ(remote.bytes_read["b"], 1 * kMiB);
}

TEST_F(RemoteTest, CopiesOfAnotherSizeAreNotBelieved) {
  const auto data = content(2 * kMiB, 'a');
  wanted = digest_of(data);
  remote.put("short", "genes", 1, content(1 * kMiB + 5, 'x'));
  remote.put("long", "genes", 1, content(2 * kMiB + 1, 'y'));
  remote.put("good", "genes", 1, data);
  ASSERT_TRUE(run(data.size(), {"short", "long", "good"}));
  EXPECT_EQ(fetched(data.size()), data);
  EXPECT_EQ(remote.bytes_read["good"], data.size()) << "nothing of the wrong copies is kept";

  const auto status = run(data.size(), {"short", "long"});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("'short': its copy has only"), std::string::npos);
  EXPECT_NE(status.error().message.find("'long': its copy has more than"), std::string::npos);
}

TEST_F(RemoteTest, CopiesWithOtherBytesAreNotBelieved) {
  const auto data = content(2 * kMiB, 'a');
  auto flipped = data;
  flipped[kMiB + 77] ^= 1;
  wanted = digest_of(data);
  remote.put("bad", "genes", 1, flipped);
  remote.put("good", "genes", 1, data);
  ASSERT_TRUE(run(data.size(), {"bad", "good"}));
  EXPECT_EQ(fetched(data.size()), data);
  EXPECT_EQ(remote.doubted, std::vector<std::string>{"bad"});

  const auto status = run(data.size(), {"bad"});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("other bytes than its checksum"), std::string::npos);
}

// Of two sources one half each: whose is wrong is seen only of one alone.
TEST_F(RemoteTest, TheGoodSourceIsNotBlamedForTheBytesOfAnother) {
  const auto data = content(4 * kMiB, 'a');
  auto flipped = data;
  flipped[7] ^= 1;
  wanted = digest_of(data);
  remote.put("bad", "genes", 1, flipped);
  remote.put("good", "genes", 1, data);
  remote.fail_from["bad"] = 2 * kMiB;
  ASSERT_TRUE(run(data.size(), {"bad", "good"}));
  EXPECT_EQ(fetched(data.size()), data);
  EXPECT_TRUE(remote.doubted.empty());
}

TEST_F(RemoteTest, NoSourceAndAllSourcesFailingSaySo) {
  auto status = run(10, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  status = run(10, {"dead1", "dead2"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnreachable);
  EXPECT_NE(status.error().message.find("dead1"), std::string::npos);
  EXPECT_NE(status.error().message.find("dead2"), std::string::npos);
}

TEST_F(RemoteTest, SourceThatClaimsMoreThanAskedIsAnError) {
  struct Liar : RemoteSource {
    Result<size_t> read(const std::string&, const DatasetId&, uint64_t,
                        std::span<std::byte> into) override {
      return into.size() + 1;
    }
  } liar;
  EXPECT_FALSE(fetch(liar, {"liar"}, {"genes", 1}, 10, file.get(), cancel));
}

TEST_F(RemoteTest, FullDiskIsNotBlamedOnTheSources) {
  const auto data = content(1000, 'a');
  wanted = digest_of(data);
  remote.put("a", "genes", 1, data);
  remote.put("b", "genes", 1, data);
  const UniqueFd full(::open("/dev/full", O_WRONLY));
  if (!full) GTEST_SKIP() << "no /dev/full";
  const auto status =
      fetch(remote, {"a", "b"}, {"genes", 1, wanted}, data.size(), full.get(), cancel);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(remote.reads["b"], 0);
}

TEST_F(RemoteTest, ABusySourceIsAskedAgainAndTheFetchGoesOn) {
  const auto data = content(4 * kMiB, 'a');
  wanted = digest_of(data);
  remote.put("slow", "genes", 1, data);
  remote.busy["slow"] = 7;
  const auto status = run(data.size(), {"slow"});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(fetched(data.size()), data);
  EXPECT_EQ(remote.busy["slow"], 0);
  EXPECT_EQ(remote.bytes_read["slow"], data.size()) << "nothing was read twice";
}

// A source that serves one read at a time and refuses the others, as a crowd finds it.
TEST_F(RemoteTest, ACrowdAtASlowSourceIsServedToTheLast) {
  constexpr size_t kReaders = 20, kBytes = 3 * kMiB;
  struct OneAtATime : RemoteSource {
    Result<size_t> read(const std::string&, const DatasetId&, uint64_t offset,
                        std::span<std::byte> into) override {
      if (reading.exchange(true)) {
        ++refused;
        return fail(ErrorCode::kExhausted, "too many reads at once");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      const size_t n = offset < kBytes ? std::min<size_t>(into.size(), kBytes - offset) : 0;
      std::memset(into.data(), 'x', n);
      reading = false;
      return n;
    }
    std::atomic<bool> reading{false};
    std::atomic<int> refused{0};
  } source;
  const auto expected = digest_of(std::string(kBytes, 'x'));
  std::vector<std::future<Status>> crowd;
  for (size_t i = 0; i < kReaders; ++i)
    crowd.push_back(std::async(std::launch::async, [&]() -> Status {
      const UniqueFd to(::memfd_create("crowd", 0));
      auto turn = fetch(source, {"slow"}, {"genes", 1, expected}, kBytes, to.get(), cancel);
      return turn ? Status{} : tl::unexpected(turn.error());
    }));
  for (auto& one : crowd) {
    const auto status = one.get();
    EXPECT_TRUE(status) << status.error().message;
  }
  EXPECT_GT(source.refused, 0) << "it was no crowd";
}

TEST_F(RemoteTest, CancelEndsIt) {
  const auto data = content(8 * kMiB, 'a');
  wanted = digest_of(data);
  remote.put("a", "genes", 1, data);
  remote.hook = [&](auto&) { cancel = true; };
  ASSERT_FALSE(run(data.size(), {"a"}));
  EXPECT_EQ(remote.reads["a"], 1);
}

// Others are asked before it is asked again.
TEST_F(RemoteTest, OneThatStaysBusyKeepsNobodyFromOneThatIsIdle) {
  const auto data = content(kMiB, 'a');
  wanted = digest_of(data);
  for (const auto* source : {"a", "b"}) remote.put(source, "genes", 1, data);
  remote.busy["a"] = 1;  // its next one, and by the hook all that follow
  remote.hook = [this](auto&) { remote.busy["a"] = 1; };
  ASSERT_TRUE(run(data.size(), {"a", "b"}));
  EXPECT_EQ(remote.reads["a"], 1);
  EXPECT_EQ(fetched(data.size()), data);
}

}  // namespace
}  // namespace tierpilot
