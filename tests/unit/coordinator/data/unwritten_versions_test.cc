// A version that is not on disk is told to nobody, and nobody builds on it where its write failed.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "tests/unit/coordinator/data/data_safety_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using UnwrittenVersionsTest = DataSafetyTest;

TEST_F(UnwrittenVersionsTest, NobodyBuildsOnAVersionThatCouldNotBeWrittenDown) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  const auto attempt = assign(submit_writer(), "m");
  break_store("ALTER TABLE datasets RENAME TO away");
  EXPECT_FALSE(exit("m", attempt, wrote(2)));
  break_store("ALTER TABLE away RENAME TO datasets");
  const auto next = submit_writer("next");
  EXPECT_THAT(state_->blocked_by(*state_->tasks.find(next)), HasSubstr("written down"));
  lifecycle_->writes().retry();
  flush();
  EXPECT_EQ(state_->blocked_by(*state_->tasks.find(next)), "");
}

TEST_F(UnwrittenVersionsTest, AnAssignmentNeedsItsVersionsOnDisk) {
  join("n");
  add_dataset("d", 4096, "n");
  std::vector<Status> seen;
  for (const uint64_t version : {1, 2})
    store_->write(
        [version](Db& db) {
          return records::need_versions(db, {{"d", version}});
        },
        [&](Status status) { seen.push_back(std::move(status)); });
  flush();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0]);
  ASSERT_FALSE(seen[1]);
  EXPECT_EQ(seen[1].error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->trouble(), "") << "the disk is well";
}

TEST_F(UnwrittenVersionsTest, AVersionIsToldOnceItIsOnDisk) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  const auto attempt = assign(submit_writer(), "m");
  flush();
  hold_disk();
  auto exit = wrote(2, 7);
  exit.written[0].bytes = 8192;
  lifecycle_->exited("m", attempt, exit, nullptr);
  const auto& entry = *state_->catalog.find("d");
  ASSERT_EQ(entry.dataset.version, 2u);
  auto told = entry.told();
  EXPECT_EQ(told.version, 1u);
  EXPECT_EQ(told.bytes, 4096u);
  EXPECT_EQ(told.digest, ContentDigest{});
  EXPECT_EQ(told.home, "n");
  release_disk();
  told = entry.told();
  EXPECT_EQ(told.version, 2u);
  EXPECT_EQ(told.bytes, 8192u);
  EXPECT_EQ(told.digest, (ContentDigest{0, 7}));
  EXPECT_EQ(told.home, "m");
}

TEST_F(UnwrittenVersionsTest, UntilThenThoseAreToldThatHaveTheOneBefore) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  membership_->replica_changed("m", "d", {1, 4096, true, false});
  const auto attempt = assign(submit_writer(), "m");
  flush();
  hold_disk();
  lifecycle_->exited("m", attempt, wrote(2, 7), nullptr);
  const auto told = [this]() -> const auto& {
    return state_->catalog.find("d")->told_replicas();
  };
  ASSERT_THAT(told(), SizeIs(2));
  EXPECT_EQ(told().at("n").version, 1u);
  EXPECT_TRUE(told().at("n").home);
  EXPECT_EQ(told().at("m").version, 1u);
  membership_->replica_changed("m", "d", {1, 4096, false, false});
  EXPECT_THAT(told(), SizeIs(1)) << "it has told so";
  lose_all_nodes();
  EXPECT_THAT(told(), IsEmpty());
  release_disk();
}

TEST_F(UnwrittenVersionsTest, WhoHasTheNewOneIsToldWithIt) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(exit("m", assign(submit_writer(), "m"), wrote(2, 7)));
  const auto& told = state_->catalog.find("d")->told_replicas();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told.at("m").version, 2u);
}

TEST_F(UnwrittenVersionsTest, AVersionWhoseWriteFailedIsToldOnceThatHasSucceeded) {
  join("n");
  add_dataset("d", 4096, "n");
  const auto attempt = assign(submit_writer(), "n");
  break_store("ALTER TABLE datasets RENAME TO away");
  EXPECT_FALSE(exit("n", attempt, wrote(2)));
  EXPECT_EQ(state_->catalog.find("d")->told().version, 1u);
  break_store("ALTER TABLE away RENAME TO datasets");
  lifecycle_->writes().retry();
  flush();
  EXPECT_EQ(state_->catalog.find("d")->told().version, 2u);
}

TEST_F(UnwrittenVersionsTest, OfSeveralVersionsTheLastOnDiskIsTold) {
  join("n");
  add_dataset("d", 4096, "n");
  Publication publication(*state_);
  const auto publish = [&](uint64_t version) {
    Task task;
    task.node = "n";
    task.exit = wrote(version, version);
    return publication.publish(task);
  };
  const auto told = [&] { return state_->catalog.find("d")->told().version; };
  const auto second = publish(2), third = publish(3);
  EXPECT_EQ(told(), 1u);
  publication.durable(second);
  EXPECT_EQ(told(), 2u);
  publication.durable(third);
  EXPECT_EQ(told(), 3u);
  publication.durable(second);
  EXPECT_EQ(told(), 3u);
}

}  // namespace
}  // namespace tierpilot::testing
