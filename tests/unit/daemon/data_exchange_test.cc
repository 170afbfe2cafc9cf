// Two daemons' data planes in one process: one serves its pool, the other reads from a worker
// thread.
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/daemon/data_fixture.h"

namespace tierpilot::agent {
namespace {

using DataExchange = DataFixture;

TEST_F(DataExchange, SequentialReadGivesTheSameBytes) {
  constexpr uint64_t kBytes = (9 << 20) + 12345;
  create("d", kBytes);
  std::vector<std::byte> expected(kBytes);
  for (size_t at = 0; at < kBytes;)
    at += pool->read(ids["d"], at, std::span(expected).subspan(at)).value();
  beside_the_loop([&] {
    for (const size_t chunk : {RemoteFetcher::kChunkBytes, size_t{300'000}}) {
      auto got = read_all("d", chunk);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(*got == expected) << "in chunks of " << chunk;
    }
  });
}

// A reader of a dataset and a writer that copies it may fetch it at the same moment.
TEST_F(DataExchange, TwoReadersOfOneDatasetDoNotDisturbEachOther) {
  create("d", 6 << 20);
  beside_the_loop([&] {
    for (int round = 0; round < 10; ++round) {
      Result<std::vector<std::byte>> other;
      std::thread second([&] { other = read_all("d", RemoteFetcher::kChunkBytes); });
      const auto got = read_all("d", RemoteFetcher::kChunkBytes);
      second.join();
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_TRUE(other) << other.error().message;
      ASSERT_TRUE(*got == *other);
    }
  });
}

TEST_F(DataExchange, RandomOffsetsAndRepeats) {
  create("d", 6 << 20);
  beside_the_loop([&] {
    std::vector<std::byte> buffer(RemoteFetcher::kChunkBytes), expected(buffer.size());
    for (const uint64_t offset : {0u, 0u, 1u << 20, 4u << 20, 3u, 2u << 20}) {
      auto got = fetcher->read(address(), ids["d"], offset, buffer);
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_EQ(pool->read(ids["d"], offset, expected).value(), *got);
      EXPECT_EQ(buffer, expected) << offset;
    }
    EXPECT_EQ(fetcher->read(address(), ids["d"], 99 << 20, buffer).value(), 0u);
  });
}

TEST_F(DataExchange, ErrorsKeepTheirCode) {
  beside_the_loop([&] {
    std::vector<std::byte> buffer(100);
    EXPECT_EQ(fetcher->read(address(), {"missing", 1, digest_of("")}, 0, buffer).error().code,
              ErrorCode::kNotFound);
    EXPECT_EQ(fetcher->read("unix:/no/such/socket", ids["d"], 0, buffer).error().code,
              ErrorCode::kUnreachable);
    EXPECT_EQ(fetcher->read("nonsense", ids["d"], 0, buffer).error().code, ErrorCode::kInvalid);
  });
}

TEST_F(DataExchange, ReconnectsToARestartedDaemon) {
  create("d", 1000);
  std::vector<std::byte> buffer(1000);
  beside_the_loop([&] { ASSERT_TRUE(fetcher->read(address(), ids["d"], 0, buffer)); });
  serve();
  beside_the_loop([&] {
    auto got = fetcher->read(address(), ids["d"], 0, buffer);
    // The first may still meet the old connection; what follows never does.
    if (!got) got = fetcher->read(address(), ids["d"], 0, buffer);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, 1000u);
  });
}

TEST_F(DataExchange, SilenceEndsInATimeout) {
  RemoteFetcher impatient(loop, nullptr, 50);
  std::vector<std::byte> buffer(100);
  // The loop does not run.
  EXPECT_EQ(impatient.read(address(), {"d", 1, digest_of("")}, 0, buffer).error().code,
            ErrorCode::kTimeout);
}

TEST_F(DataExchange, CloseWakesWhoWaits) {
  std::vector<std::byte> buffer(100);
  Result<size_t> got = 0;
  std::thread worker([&] { got = fetcher->read(address(), ids["d"], 0, buffer); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  fetcher->close();
  worker.join();
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tierpilot::agent
