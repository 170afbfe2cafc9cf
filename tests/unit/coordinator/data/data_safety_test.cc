// Nothing of a dataset is dropped before what replaces it is on disk, and no version has two
// values.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "model/registration.h"
#include "tests/unit/coordinator/data/data_safety_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Version = std::pair<std::string, uint64_t>;

TEST_F(DataSafetyTest, OldVersionsStayWhileTheNewOneIsNotOnDisk) {
  auto n = join("n");
  auto m = join("m");
  add_dataset("d", 4096, "n");
  membership_->replica_changed("m", "d", {1, 4096, true, false});
  const auto attempt = assign(submit_writer(), "m");
  break_store("ALTER TABLE datasets RENAME TO away");
  EXPECT_FALSE(exit("m", attempt, wrote(2)));
  EXPECT_THAT(n->dropped, IsEmpty());
  EXPECT_THAT(m->dropped, IsEmpty());
  membership_->replica_changed("n", "d", {1, 4096, true, true, true});
  EXPECT_THAT(n->dropped, IsEmpty()) << "also not when it reports the old one";
  break_store("ALTER TABLE away RENAME TO datasets");
  lifecycle_->writes().retry();
  flush();
  EXPECT_THAT(n->dropped, ElementsAre(Version{"d", 2}));
  EXPECT_THAT(m->dropped, ElementsAre(Version{"d", 2}));
}

// After a power cut there would be one that was made from what nobody knows of.
// The node committed, and died before anybody had heard of it.
TEST_F(DataSafetyTest, AVersionThatNobodyReportsIsDiscardedAndItsWriterRunsAgain) {
  join("n");
  add_dataset("d", 4096, "n");
  const auto attempt = assign(submit_writer(), "n");
  flush();
  restart();
  lose_all_nodes();
  auto back = come_back("n", 8, {{"d", {1, 4096, false, true}}, {"d", {2, 4096, true, true}}});
  EXPECT_THAT(back->discarded, ElementsAre(Version{"d", 2}));
  EXPECT_THAT(back->dropped, IsEmpty());
  auto* task = state_->tasks.find(attempt.task);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->state, TaskState::kQueued);
  EXPECT_EQ(state_->catalog.blocked_by(*task), "");
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 1u);
}

TEST_F(DataSafetyTest, WhatMayBeTheLastCopyIsKept) {
  join("n");
  add_dataset("d", 4096, "n");
  assign(submit_writer(), "n");
  lose_all_nodes();
  auto back = come_back("n", 8, {{"d", {2, 4096, true, true}}});
  EXPECT_THAT(back->discarded, IsEmpty());
  EXPECT_THAT(back->dropped, IsEmpty());
}

TEST_F(DataSafetyTest, AVersionWhoseWriterIsStillToReportStays) {
  join("n");
  add_dataset("d", 4096, "n");
  const auto attempt = assign(submit_writer(), "n");
  lose_all_nodes();
  auto back =
      come_back("n", 7, {{"d", {1, 4096, false, true}}, {"d", {2, 4096, true, true}}}, {attempt});
  EXPECT_THAT(back->discarded, IsEmpty());
  ASSERT_TRUE(exit("n", attempt, wrote(2)));
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 2u);
  EXPECT_THAT(back->dropped, ElementsAre(Version{"d", 2}));
}

TEST_F(DataSafetyTest, ALateSuccessGivesWayToWhoWritesNow) {
  join("n");
  join("m");
  add_dataset("d", 4096, "m");
  const auto late = assign(submit_writer("late"), "n");
  lose_all_nodes();
  come_back("m", 7, {{"d", {1, 4096, false, true}}});
  const auto now = assign(submit_writer("now"), "m");
  auto n = come_back("n", 7, {{"d", {2, 4096, true, true}}}, {late});
  ASSERT_TRUE(exit("n", late, wrote(2)));
  EXPECT_EQ(state_->tasks.find(late.task)->state, TaskState::kQueued) << "it runs again";
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 1u);
  EXPECT_THAT(n->discarded, ElementsAre(Version{"d", 2}));
  ASSERT_TRUE(exit("m", now, wrote(2)));
  const auto& entry = *state_->catalog.find("d");
  EXPECT_EQ(entry.dataset.version, 2u);
  EXPECT_EQ(entry.dataset.home, "m");
  // The other way around: its base has been overtaken.
  const auto again = assign(late.task, "n");
  ASSERT_TRUE(exit("n", again, wrote(3)));
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 3u);
}

TEST_F(DataSafetyTest, ALateSuccessOnAnOvertakenVersionIsNone) {
  join("n");
  join("m");
  add_dataset("d", 4096, "m");
  const auto late = assign(submit_writer("late"), "n");
  lose_all_nodes();
  come_back("m", 7, {{"d", {1, 4096, false, true}}});
  ASSERT_TRUE(exit("m", assign(submit_writer("now"), "m"), wrote(2)));
  auto n = come_back("n", 7, {{"d", {2, 4096, true, true, true, {0, 7}}}}, {late});
  ASSERT_TRUE(exit("n", late, wrote(2, 7)));
  EXPECT_EQ(state_->tasks.find(late.task)->state, TaskState::kQueued);
  EXPECT_THAT(n->discarded, ::testing::Contains(Version{"d", 2}));
  EXPECT_FALSE(state_->catalog.find("d")->replicas.contains("n")) << "those are other bytes";
}

TEST_F(DataSafetyTest, AnotherSizeUnderTheSameNumberIsNoReplica) {
  join("n");
  auto m = join("m");
  add_dataset("d", 4096, "n");
  membership_->replica_changed("m", "d", {1, 5000, true, false});
  EXPECT_FALSE(state_->catalog.find("d")->replicas.contains("m"));
  EXPECT_THAT(m->discarded, ElementsAre(Version{"d", 1}));
}

TEST_F(DataSafetyTest, OtherBytesUnderTheSameNumberAreNoReplica) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(exit("n", assign(submit_writer(), "n"), wrote(2, 5)));
  // It wrote a version 2 of its own while it was away.
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  const auto m = come_back("m", 8, {{"d", {2, 4096, false, true, false, {0, 6}}}});
  EXPECT_FALSE(state_->catalog.find("d")->replicas.contains("m"));
  EXPECT_THAT(m->discarded, ElementsAre(Version{"d", 2}));
  membership_->replica_changed("m", "d", {2, 4096, true, false, false, {0, 5}});
  EXPECT_TRUE(state_->catalog.find("d")->replicas.contains("m")) << "a copy that was fetched";
  membership_->replica_changed("m", "d", {2, 4096, false, false, false, {0, 6}});
  EXPECT_TRUE(state_->catalog.find("d")->replicas.contains("m"))
      << "it was the other one that went";
}

// The same bytes are made there again before the order to discard them is carried out.
TEST_F(DataSafetyTest, WhatIsBeingDiscardedIsNotPublished) {
  join("n");
  add_dataset("d", 4096, "n");
  assign(submit_writer(), "n");
  lose_all_nodes();
  auto n = come_back("n", 8,
                     {{"d", {1, 4096, false, true}}, {"d", {2, 4096, true, true, true, {0, 5}}}});
  ASSERT_THAT(n->discarded, ElementsAre(Version{"d", 2}));
  const auto again = assign(1, "n");
  ASSERT_TRUE(exit("n", again, wrote(2, 5)));
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 1u);
  EXPECT_EQ(state_->tasks.find(1)->state, TaskState::kQueued);
  membership_->replica_changed("n", "d", {2, 4096, false, false, false, {0, 5}});
  ASSERT_TRUE(exit("n", assign(1, "n"), wrote(2, 5)));
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 2u);
}

TEST_F(DataSafetyTest, ADatasetOfAnOlderStoreLearnsItsDigestFromItsCopy) {
  join("n");
  auto m = join("m");
  add_dataset("d", 4096, "n");
  membership_->replica_changed("m", "d", {1, 5000, false, true, false, {0, 9}});
  EXPECT_FALSE(state_->catalog.find("d")->dataset.digest.known()) << "that has another size";
  membership_->replica_changed("n", "d", {1, 4096, false, true, true, {0, 5}});
  flush();
  restart();
  EXPECT_EQ(state_->catalog.find("d")->dataset.digest, (ContentDigest{0, 5}));
}

// Daemons of before there were checksums serve those of today nothing that these could compare.
TEST_F(DataSafetyTest, AFailureToReadWhatHasNoDigestYetIsNoTry) {
  settings_.max_attempts = 1;
  restart();
  auto n = join("n");
  for (const uint64_t content : {0, 5}) {
    const std::string name = content == 0 ? "older" : "newer";
    n->made = {0, content};
    add_dataset(name, 4096, "n");
    auto reader = spec("r");
    reader.datasets = {{name, false}};
    const auto attempt = assign(submit({reader})->first_task, "n");
    TaskExit failed;
    failed.how = TaskEnd::kDataFailed;
    ASSERT_TRUE(exit("n", attempt, failed));
    const auto* waits = state_->tasks.find(attempt.task);
    EXPECT_EQ(waits && waits->state == TaskState::kQueued, content == 0);
  }
}

TEST_F(DataSafetyTest, ADamagedCopyIsNotedAtItsNode) {
  join("n");
  add_dataset("d", 4096, "n");
  membership_->replica_changed("n", "d", {1, 4096, false, false, false, {}, true});
  flush();
  EXPECT_TRUE(state_->catalog.find("d")->replicas.empty());
  const auto events = records::node_events(store_->reader(), "n", 10);
  ASSERT_TRUE(events && !events->empty());
  EXPECT_EQ(events->front().what, "a damaged copy");
  EXPECT_THAT(events->front().why, HasSubstr("'d' version 1"));
}

// It was asked to make the dataset first, and did so when another one had been asked.
TEST_F(DataSafetyTest, ANodeThatMadeTheSameBytesTooLateHasThem) {
  join("n")->made = {0, 5};
  join("m");
  std::optional<Result<Dataset>> added;
  datasets_->add("", "d", ZeroSource{4096}, "n", [&](auto made) { added = std::move(made); });
  membership_->replica_changed("m", "d", {1, 4096, false, true, true, {0, 5}});
  ASSERT_TRUE(posts_.run_until([&] { return added.has_value(); }));
  ASSERT_TRUE(*added);
  EXPECT_TRUE(state_->catalog.find("d")->replicas.contains("m"));
  EXPECT_THAT(state_->catalog.strays("d"), IsEmpty());
}

// A node may be anybody who has a certificate.
// Empty datasets cost a client nothing.
TEST_F(DataSafetyTest, DatasetsWithoutEndAreRefused) {
  join("n");
  for (int i = 0; i < 200'000; ++i) state_->catalog.put({.name = "d" + std::to_string(i)});
  std::optional<Result<Dataset>> added;
  datasets_->add("", "more", ZeroSource{0}, "n", [&](auto made) { added = std::move(made); });
  ASSERT_TRUE(added && !*added);
  EXPECT_EQ(added->error().code, ErrorCode::kExhausted);
  EXPECT_THAT(added->error().message, HasSubstr("200000 datasets"));
}

TEST_F(DataSafetyTest, ARequestIdIsNoPlaceForData) {
  join("n")->made = {0, 5};
  std::optional<Result<Dataset>> added;
  datasets_->add(std::string(129, 'i'), "d", ZeroSource{0}, "n",
                 [&](auto made) { added = std::move(made); });
  ASSERT_TRUE(added && !*added);
  EXPECT_EQ(added->error().code, ErrorCode::kInvalid);
}

TEST_F(DataSafetyTest, ANodeThatIsLostWhileItsDatasetIsWrittenKeepsNothing) {
  join("n")->made = {0, 5};
  hold_disk();
  std::optional<Result<Dataset>> added;
  datasets_->add("", "d", ZeroSource{4096}, "n", [&](auto made) { added = std::move(made); });
  lose_all_nodes();
  join("m");
  release_disk();
  ASSERT_TRUE(posts_.run_until([&] { return added.has_value(); }));
  ASSERT_TRUE(*added);
  const auto& entry = *state_->catalog.find("d");
  EXPECT_THAT(entry.replicas, IsEmpty());
  auto reader = spec("r");
  reader.datasets = {{"d", false}};
  const auto* task = state_->tasks.find(submit({reader})->first_task);
  EXPECT_THAT(state_->catalog.blocked_by(*task), HasSubstr("no node that is up holds version 1"));
  come_back("n", 9, {{"d", {1, 4096, false, true, true, {0, 5}}}});
  EXPECT_THAT(state_->catalog.blocked_by(*task), IsEmpty());
}

// Its disk was lost, and who took its place has told what there is.
TEST_F(DataSafetyTest, OneThatIsMadeIsNotHadFromADaemonThatIsGoneWhenItIsWrittenDown) {
  const auto n = join("n");
  n->makes_later = true;
  datasets_->add("", "d", ZeroSource{4096}, "n", [](auto) {});
  ASSERT_EQ(n->makings.size(), 1u);
  n->makings.front()(DatasetVersion{"d", 1, 4096, {0, 9}});
  auto anew = facts("n", 8);
  anew.predecessors = {7};
  ASSERT_TRUE(membership_->join(anew, std::make_shared<FakeNode>(), {}, {}));
  flush();
  ASSERT_TRUE(state_->catalog.find("d"));
  EXPECT_FALSE(state_->catalog.find("d")->replicas.contains("n"));
}

}  // namespace
}  // namespace tierpilot::testing
