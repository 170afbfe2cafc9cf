// What a node that is away still has of a removed dataset goes when it is back, and nothing else.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "model/registration.h"
#include "tests/unit/coordinator/data/data_safety_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using OwedDropsTest = DataSafetyTest;
using Version = std::pair<std::string, uint64_t>;

// The clearing of the drop that was paid is lost, and the name is used again.
TEST_F(OwedDropsTest, ADropThatIsOwedDoesNotTakeTheNextDatasetOfThatName) {
  join("n");
  add_dataset("d", 4096, "n");
  break_store(
      "CREATE TRIGGER full BEFORE DELETE ON owed_drops BEGIN SELECT RAISE(FAIL, 'full'); END");
  ASSERT_TRUE(remove("d"));
  flush();
  break_store("DROP TRIGGER full");
  add_dataset("d", 4096, "n");
  flush();
  restart();
  lose_all_nodes();
  auto n = come_back("n", 8, {{"d", {1, 4096, false, true, true}}});
  EXPECT_THAT(n->dropped, IsEmpty());
  EXPECT_TRUE(state_->catalog.find("d")->replicas.contains("n"));
}

// What was sent may be lost with the connection, or with the node.
TEST_F(OwedDropsTest, ADropIsOwedUntilItsNodeHasTheDatasetNoMore) {
  const Replicas held{{"d", {1, 4096, false, true, true}}};
  join("n");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(remove("d"));
  for (uint64_t instance : {8, 9}) {
    lose_all_nodes();
    flush();
    if (instance == 9) restart();
    const auto n = come_back("n", instance, held);
    EXPECT_THAT(n->dropped, ElementsAre(Version("d", UINT64_MAX))) << instance;
  }
  membership_->replica_changed("n", "d", {1, 4096, false, false, false});
  flush();
  EXPECT_THAT(*records::owed_drops(store_->reader()), IsEmpty());
  lose_all_nodes();
  EXPECT_THAT(come_back("n", 10, {})->dropped, IsEmpty());
}

TEST_F(OwedDropsTest, ADropThatIsOwedSparesTheDatasetOfThatNameThatIsJustMadeThere) {
  join("n");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(remove("d"));
  std::optional<Result<Dataset>> added;
  datasets_->add("", "d", ZeroSource{4096}, "n", [&](auto made) { added = std::move(made); });
  ASSERT_FALSE(added) << "it is made, and not on disk yet";
  const auto n = come_back("n", 7, {{"d", {1, 4096, false, true, true}}});
  EXPECT_THAT(n->dropped, IsEmpty());
  ASSERT_TRUE(posts_.run_until([&] { return added.has_value(); }));
  EXPECT_TRUE(*added);
}

TEST_F(OwedDropsTest, ADropIsStillOwedWhereTheNextDatasetOfThatNameWasNotMade) {
  join("n");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(remove("d"));
  std::optional<Result<Dataset>> added;
  datasets_->add("", "d", FileSource{"/none"}, "n", [&](auto made) { added = std::move(made); });
  ASSERT_TRUE(added && !*added);
  const auto n = come_back("n", 7, {{"d", {1, 4096, false, true, true}}});
  EXPECT_THAT(n->dropped, ElementsAre(Version("d", UINT64_MAX)));
}

// As a node that reboots without a word does: its old connection breaks later.
TEST_F(OwedDropsTest, ANodeThatHasJoinedAnewBeforeThatWasKnownIsAskedThen) {
  const auto before = join("n");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(remove("d"));
  before->makes_later = true;
  std::optional<Result<Dataset>> added;
  datasets_->add("", "d", ZeroSource{4096}, "n", [&](auto made) { added = std::move(made); });
  const auto n = come_back("n", 7, {{"d", {1, 4096, false, true, true}}});
  EXPECT_THAT(n->dropped, IsEmpty()) << "it may be the new one";
  ASSERT_THAT(before->makings, SizeIs(1));
  before->makings.front()(fail(ErrorCode::kUnreachable, "connection lost"));
  ASSERT_TRUE(added && !*added);
  EXPECT_THAT(n->dropped, ElementsAre(Version("d", UINT64_MAX)));
}

// Its registration has so many replicas, and the others follow.
TEST_F(OwedDropsTest, ADropIsStillOwedWhereANodeHasMoreReplicasThanItTellsAtOnce) {
  join("n");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(remove("d"));
  lose_all_nodes();
  Replicas told;
  for (size_t i = 0; i < kReplicasInRegistration; ++i)
    told.push_back({"other-" + std::to_string(i), {1, 4096, false, true, true}});
  const auto n = come_back("n", 8, told);
  EXPECT_THAT(n->dropped, Contains(Version("d", UINT64_MAX)));
  flush();
  EXPECT_FALSE(state_->owed_drops.empty());
  membership_->replica_changed("n", "d", {1, 4096, false, false, false});
  EXPECT_TRUE(state_->owed_drops.empty());
}

TEST_F(OwedDropsTest, ADropIsOwedNoMoreWhenItsNodeComesBackWithoutTheDataset) {
  join("n");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(remove("d"));
  lose_all_nodes();
  come_back("n", 8, {});
  flush();
  EXPECT_TRUE(state_->owed_drops.empty());
  EXPECT_THAT(*records::owed_drops(store_->reader()), IsEmpty());
}

// It was told to drop that over a connection that was dying.
TEST_F(OwedDropsTest, ADropIsOwedToANodeThatMayHaveAnOlderVersionStill) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(exit("m", assign(submit_writer(), "m"), wrote(2, 7)));
  flush();
  ASSERT_TRUE(remove("d"));
  lose_all_nodes();
  const auto n = come_back("n", 8, {{"d", {1, 4096, false, true, true}}});
  EXPECT_THAT(n->dropped, ElementsAre(Version("d", UINT64_MAX)));
}

TEST_F(OwedDropsTest, ADropIsNotOwedToANodeThatHasNoOlderVersionAnyMore) {
  join("n");
  join("m");
  add_dataset("d", 4096, "n");
  ASSERT_TRUE(exit("m", assign(submit_writer(), "m"), wrote(2, 7)));
  flush();
  membership_->replica_changed("n", "d", {1, 4096, false, false, false});
  join("k");
  membership_->replica_changed("k", "d", {2, 4096, false, true, true, {0, 7}});
  membership_->replica_changed("m", "d", {2, 4096, false, false, false, {0, 7}});
  ASSERT_TRUE(remove("d"));
  EXPECT_FALSE(state_->owed_drops.contains("n"));
  EXPECT_FALSE(state_->owed_drops.contains("m")) << "it wrote, and never had the one before";
  EXPECT_TRUE(state_->owed_drops.contains("k"));
}

}  // namespace
}  // namespace tierpilot::testing
