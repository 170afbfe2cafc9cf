// Writers: private copies, atomic commit, discard.
#include <fcntl.h>

#include "base/unique_fd.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

class PoolWrite : public PoolTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    options.slow_kind = GetParam();
    if (!durable()) {
      std::filesystem::remove_all(slow_dir);
      slow_dir = options.slow_dir = make_folder("/dev/shm");
    }
    open();
    write_file(source(), old_data);
    ASSERT_TRUE(create("w", ImportFile{source()}));
    std::filesystem::remove(source());
  }
  bool durable() const { return std::string(GetParam()) == "directory"; }
  std::string source() const { return slow_dir + ".source"; }

  const std::string old_data = content(kMiB, 'o');
  const std::string new_data = content(kMiB, 'n');
};

TEST_P(PoolWrite, ReadersKeepTheOldVersionUntilTheyEnd) {
  const auto reader = serve("reader", {item("w", kMiB)});
  ASSERT_TRUE(reader);
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->items[0].how, ServeHow::kHit);
  EXPECT_TRUE(writer->items[0].write);
  EXPECT_NE(writer->items[0].path, reader->items[0].path);
  EXPECT_EQ(read_file(writer->items[0].path), old_data);
  write_file(writer->items[0].path, new_data);
  EXPECT_EQ(read_file(reader->items[0].path), old_data);

  const auto result = finish("writer");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(placed(*result), (std::vector<ReplicaChange>{{"w", 2, kMiB, true, durable(), true}}));
  EXPECT_EQ(read_file(reader->items[0].path), old_data) << "still pinned";
  EXPECT_TRUE(replica("w", 1));
  const auto next = serve("next", {item("w", kMiB, 2)});
  ASSERT_TRUE(next);
  EXPECT_EQ(read_file(next->items[0].path), new_data);
  ASSERT_TRUE(finish("reader"));
  EXPECT_TRUE(replica("w", 1)) << "the cluster may not know of the new version yet";
  ASSERT_TRUE(drop("w", 2));
  EXPECT_FALSE(replica("w", 1));
  ASSERT_TRUE(finish("next"));
  expect_consistent();
}

TEST_P(PoolWrite, CommitSurvivesReopening) {
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->items[0].how, ServeHow::kPromotion) << "straight from the slow tier";
  EXPECT_FALSE(in_fast("w", 1));
  write_file(writer->items[0].path, new_data);
  ASSERT_TRUE(finish("writer"));
  open();
  EXPECT_EQ(placed(replica("w", 2)), (ReplicaChange{"w", 2, kMiB, true, durable(), true}));
  EXPECT_EQ(replica("w", 1)->home, true) << "nobody has said that version 2 counts";
  const auto old_reader = serve("old", {item("w", kMiB)});
  ASSERT_TRUE(old_reader);
  EXPECT_EQ(read_file(old_reader->items[0].path), old_data);
  ASSERT_TRUE(finish("old"));
  const auto reader = serve("reader", {item("w", kMiB, 2)});
  ASSERT_TRUE(reader);
  EXPECT_EQ(read_file(reader->items[0].path), new_data);
}

TEST_P(PoolWrite, FailureDiscards) {
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  write_file(writer->items[0].path, new_data);
  const auto result = finish("writer", false);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->empty());
  EXPECT_FALSE(std::filesystem::exists(writer->items[0].path));
  const auto reader = serve("reader", {item("w", kMiB)});
  ASSERT_TRUE(reader);
  EXPECT_EQ(read_file(reader->items[0].path), old_data);
  ASSERT_TRUE(finish("reader"));
  EXPECT_EQ(pool->totals().discards, 1u);
  expect_consistent();
}

TEST_P(PoolWrite, SecondWriterIsRefusedUntilTheFirstEnds) {
  ASSERT_TRUE(serve("w1", {write_item("w", kMiB)}));
  const auto second = serve("w2", {write_item("w", kMiB)});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  ASSERT_TRUE(finish("w1"));
  EXPECT_TRUE(serve("w2", {write_item("w", kMiB, 2)}));
}

TEST_P(PoolWrite, AccountingFollowsTheNewSize) {
  for (const uint64_t bytes : {3 * kMiB, kKiB, uint64_t{0}}) {
    const auto now = pool->replicas().back();  // the newest version
    const auto writer = serve("writer", {write_item("w", now.bytes, now.version)});
    ASSERT_TRUE(writer) << writer.error().message;
    write_file(writer->items[0].path, content(bytes, 's'));
    const auto result = finish("writer");
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->at(0).bytes, bytes);
    expect_consistent();
  }
}

TEST_P(PoolWrite, GrowthEvictsOthers) {
  remote->put("far", "f", 1, content(2 * kMiB, 'f'));
  use(remote_item("f", 2 * kMiB));
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  write_file(writer->items[0].path, content(4 * kMiB, 'g'));
  const auto result = finish("writer");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->at(0).in_fast);
  EXPECT_EQ(placed(replica("f")), (ReplicaChange{"f", 1, 2 * kMiB, false, true, false}));
  expect_consistent();
}

TEST_P(PoolWrite, WhatOutgrowsTheFastTierGoesToTheSlowOne) {
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  const auto grown = content(5 * kMiB, 'g');
  write_file(writer->items[0].path, grown);
  const auto result = finish("writer");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(placed(result->at(0)), (ReplicaChange{"w", 2, 5 * kMiB, false, true, true}));
  EXPECT_EQ(read_file(slow_dir + "/w@2@5242880@" + to_string(digest_of(grown))), grown);
  expect_consistent();
}

TEST_P(PoolWrite, WhatOutgrowsTheNodeIsRefusedAndTheOldVersionStays) {
  options.slow_budget_bytes = 2 * kMiB;
  open();
  ASSERT_TRUE(set_home("w", 1, true));
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  write_file(writer->items[0].path, content(5 * kMiB, 'g'));
  const auto result = finish("writer");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(result.error().no_room_bytes, 5 * kMiB);
  EXPECT_NE(result.error().message.find("5242880"), std::string::npos) << result.error().message;
  EXPECT_TRUE(replica("w", 1));
  expect_consistent();
}

TEST_P(PoolWrite, ADiscardedVersionLeavesItsNumberToTheNextWriterAtOnce) {
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  write_file(writer->items[0].path, new_data);
  ASSERT_TRUE(finish("writer"));
  std::promise<Status> told;
  pool->discard({"w", 2, digest("w", 2)},
                [&](Status status) { told.set_value(std::move(status)); });
  // Right behind: nothing has been removed yet, perhaps.
  const auto again = serve("again", {write_item("w", kMiB)});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(read_file(again->items[0].path), old_data);
  ASSERT_TRUE(told.get_future().get());
  EXPECT_FALSE(replica("w", 2));
  EXPECT_TRUE(replica("w", 1)) << "only the one that was named goes";
  write_file(again->items[0].path, content(kMiB, 'z'));
  ASSERT_TRUE(finish("again"));
  const auto reader = serve("reader", {item("w", kMiB, 2)});
  ASSERT_TRUE(reader);
  EXPECT_EQ(read_file(reader->items[0].path), content(kMiB, 'z'));
  ASSERT_TRUE(finish("reader"));
  expect_consistent();
}

// Two tries of a task wrote the number; what the first one left has not been discarded yet.
TEST_P(PoolWrite, AVersionIsToldByItsContent) {
  const auto orphan = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(orphan);
  write_file(orphan->items[0].path, new_data);
  ASSERT_TRUE(finish("writer"));
  const auto counts = content(kMiB, 'r');
  remote->put("far", "w", 2, counts);
  auto wanted = remote_item("w", kMiB);
  wanted.version = 2;
  wanted.digest = digest_of(counts);
  const auto reader = serve("reader", {wanted});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(read_file(reader->items[0].path), counts);
  ASSERT_TRUE(finish("reader"));
  const auto again = serve("again", {write_item("w", kMiB)});
  ASSERT_TRUE(again) << again.error().message;
  write_file(again->items[0].path, content(kMiB, 'z'));
  ASSERT_TRUE(finish("again")) << "another content may take the same number";
  EXPECT_EQ(pool->replicas().size(), 4u);
  std::promise<Status> told;
  pool->discard({"w", 2, digest_of(new_data)}, [&](Status status) { told.set_value(status); });
  ASSERT_TRUE(told.get_future().get());
  EXPECT_EQ(pool->replicas().size(), 3u) << "only those bytes go";
  expect_consistent();
}

TEST_P(PoolWrite, TheSameBytesAgainAreTheSameVersion) {
  for (const auto* writer : {"first", "second"}) {
    const auto served = serve(writer, {write_item("w", kMiB)});
    ASSERT_TRUE(served) << served.error().message;
    write_file(served->items[0].path, new_data);
    const auto result = finish(writer);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->at(0).digest, digest_of(new_data));
    EXPECT_EQ(pool->replicas().size(), 2u);
    expect_consistent();
  }
}

TEST_P(PoolWrite, ManyDatasetsAllOrNone) {
  ASSERT_TRUE(create("v", RandomFill{kMiB, 1}));
  const auto writer = serve("writer", {write_item("w", kMiB), write_item("v", kMiB)});
  ASSERT_TRUE(writer);
  write_file(writer->items[0].path, new_data);
  std::filesystem::remove(writer->items[1].path);
  const auto result = finish("writer");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find(writer->items[1].path), std::string::npos);
  EXPECT_FALSE(replica("w", 2)) << "the other one is not committed either";
  EXPECT_TRUE(replica("w", 1));
  EXPECT_TRUE(replica("v", 1));
  expect_consistent();

  const auto again = serve("writer", {write_item("w", kMiB), write_item("v", kMiB)});
  ASSERT_TRUE(again);
  const auto both = finish("writer");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->size(), 2u);
  expect_consistent();
}

TEST_P(PoolWrite, WhatATaskPutsInPlaceOfItsCopyIsNotFollowed) {
  const auto secret = slow_dir + ".secret";
  write_file(secret, "secret");
  const std::vector<std::function<void(const std::string&)>> tricks = {
      [&](const std::string& path) { std::filesystem::create_symlink(secret, path); },
      [&](const std::string& path) { std::filesystem::create_hard_link(secret, path); },
      [&](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); },
      [&](const std::string& path) { std::filesystem::create_directories(path + "/sub"); }};
  for (const auto& trick : tricks) {
    const auto writer = serve("writer", {write_item("w", kMiB)});
    ASSERT_TRUE(writer) << writer.error().message;
    std::filesystem::remove(writer->items[0].path);
    std::error_code other_file_system;
    try {
      trick(writer->items[0].path);
    } catch (const std::filesystem::filesystem_error&) {  // no hard link between file systems
    }
    EXPECT_FALSE(finish("writer"));
    expect_consistent();
  }
  EXPECT_EQ(read_file(secret), "secret");
  std::filesystem::remove(secret);
}

TEST_P(PoolWrite, CopyThatWasNotTakenBackFromItsUserIsNotCommitted) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  ASSERT_EQ(::chown(writer->items[0].path.c_str(), 71'000, 71'000), 0);
  const auto result = finish("writer");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(std::filesystem::exists(writer->items[0].path));
  expect_consistent();
}

TEST_P(PoolWrite, CopyStillOpenForWritingIsNotCommitted) {
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer);
  const UniqueFd left_open(::open(writer->items[0].path.c_str(), O_WRONLY));
  ASSERT_TRUE(left_open);
  const auto result = finish("writer");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kConflict);
  expect_consistent();
}

TEST_P(PoolWrite, PrivateCopyIsPinnedRoom) {
  options.fast_budget_bytes = 2 * kMiB;
  open();
  ASSERT_TRUE(create("b", RandomFill{3 * kMiB / 2, 1}));
  ASSERT_TRUE(serve("writer", {write_item("w", kMiB)}));
  EXPECT_EQ(pool->usage().fast_pinned_bytes, kMiB);
  auto waiting = start_serve("t", {item("b", 3 * kMiB / 2)});
  EXPECT_FALSE(waiting.ready(50));
  ASSERT_TRUE(finish("writer", false));
  EXPECT_TRUE(waiting.get());
}

TEST_P(PoolWrite, CopyOfABaseThatMustMakeRoomForIt) {
  options.fast_budget_bytes = 3 * kMiB / 2;
  open();
  use(item("w", kMiB));
  ASSERT_TRUE(in_fast("w"));
  const auto writer = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->items[0].how, ServeHow::kPromotion);
  EXPECT_EQ(read_file(writer->items[0].path), old_data);
  EXPECT_TRUE(finish("writer"));
  expect_consistent();
}

TEST_P(PoolWrite, FetchedBaseIsWrittenWithoutKeepingIt) {
  remote->put("far", "r", 1, content(kMiB, 'r'));
  auto wanted = remote_item("r", kMiB);
  wanted.write = true;
  const auto writer = serve("writer", {wanted});
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->items[0].how, ServeHow::kFetch);
  EXPECT_EQ(read_file(writer->items[0].path), content(kMiB, 'r'));
  EXPECT_FALSE(replica("r", 1));
  ASSERT_TRUE(finish("writer"));
  EXPECT_EQ(placed(replica("r", 2)), (ReplicaChange{"r", 2, kMiB, true, durable(), true}));
  expect_consistent();
}

INSTANTIATE_TEST_SUITE_P(SlowKinds, PoolWrite, ::testing::Values("directory", "numa"));

}  // namespace
}  // namespace tierpilot
