// Which units a task with a share could have had, and why not others.
#include <fmt/format.h>

#include "coordinator/core/sharing/shared_cores.h"
#include "coordinator/store/records.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class ShareLooksTest : public ShareKeeperTest {
 protected:
  DecisionRecord decision(uint64_t id) {
    auto decisions = records::decisions(state_->store.reader(), id);
    EXPECT_TRUE(decisions) << decisions.error().message;
    EXPECT_EQ(decisions->size(), 1U);
    return decisions->empty() ? DecisionRecord{} : decisions->front();
  }
};

TEST_F(ShareLooksTest, ADecisionTellsWhichUnitsThereWere) {
  const auto other = join_sharing("n2", 2);
  const auto first = accept(shared("a", 900));
  pump();
  const auto second = accept(shared("b", 400));
  pump();
  ASSERT_EQ(task(second).state, TaskState::kRunning);
  const auto record = decision(second);
  EXPECT_EQ(record.considered, 3U);
  EXPECT_EQ(record.eligible, 2U);
  ASSERT_EQ(record.unit_looks.size(), 3U);
  const auto &chosen = record.unit_looks[0], &refused = record.unit_looks[2];
  EXPECT_EQ(chosen.node, task(second).node);
  EXPECT_EQ(chosen.unit, task(second).share->unit);
  EXPECT_EQ(chosen.free_milli, 1000U) << "as it was before";
  EXPECT_EQ(chosen.refused, "");
  EXPECT_EQ(record.unit_looks[1].refused, "");
  EXPECT_EQ(refused.node, task(first).node);
  EXPECT_EQ(refused.tasks, std::vector{first});
  EXPECT_EQ(refused.free_milli, 100U);
  EXPECT_EQ(refused.refused, "100 thousandths are free, 200 needed");
}

TEST_F(ShareLooksTest, SharedCoresAreListedByNodeAndNumberWithThoseThatHaveThem) {
  auto facts = CoreTest::facts("n0");
  facts.shared_units = {{"cpu", 2, 1 << 30}, {"gpu/X", 1, 1 << 30, "GPU-a"}, {"cpu", 2, 1 << 30}};
  ASSERT_TRUE(membership_->join(facts, std::make_shared<FakeNode>(), {}, {}));
  std::vector<std::string> pages;
  for (std::string after = "n9/gpu/GPU-z";; after = pages.back()) {
    const auto page = shared_cores_after(state_->registry, after, 2);
    if (page.empty()) break;
    for (const auto& cores : page) pages.push_back(cores.id);
  }
  EXPECT_THAT(pages, ::testing::ElementsAre("n0/cores/0", "n0/cores/2", "n1/cores/0"));
  EXPECT_EQ(find_shared_cores(state_->registry, "n0/cores/2")->facts().cores, 2);
  for (const char* none : {"n0/cores/1", "n0/cores/3", "n7/cores/0", "n0/cpu/0"})
    EXPECT_FALSE(find_shared_cores(state_->registry, none)) << none;
  auto spec = shared("a", 300);
  spec.node = "n1";
  const auto first = accept(spec), second = accept(spec);
  pump();
  EXPECT_THAT(keeper_->sharers_of("n1/cores/0"), ::testing::ElementsAre(first, second));
  EXPECT_TRUE(keeper_->sharers_of("n0/cores/0").empty());
}

TEST_F(ShareLooksTest, OneThatWaitsIsToldWhyOfEachUnit) {
  const auto first = accept(shared("a", 900));
  pump();
  auto elsewhere = shared("b", 700);
  elsewhere.node = "n1";
  const auto waits = accept(elsewhere);
  const auto other = join_sharing("n2", 1);
  pump();
  ASSERT_EQ(task(waits).state, TaskState::kQueued);
  const auto looks = keeper_->looks_now(waits);
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[0].node, "n1");
  EXPECT_EQ(looks[0].refused, "100 thousandths are free, 350 needed");
  EXPECT_EQ(looks[1].refused, "the task asks for another node");
  EXPECT_TRUE(keeper_->looks_now(first).empty()) << "it runs";
  EXPECT_TRUE(keeper_->looks_now(9999).empty());
}

TEST_F(ShareLooksTest, OfManyUnitsTheBestAreKept) {
  const auto other = join_sharing("n2", 200);
  const auto id = accept(shared("a", 900));
  pump();
  const auto record = decision(id);
  EXPECT_EQ(record.considered, 64U);
  EXPECT_EQ(record.unit_looks.size(), 12U);
  EXPECT_EQ(record.unit_looks[0].node, task(id).node);
}

TEST_F(ShareLooksTest, AUnitThatIsKeptForAnotherIsNamedSo) {
  const auto holder = accept(shared("b", 1000, 100));
  pump();
  ASSERT_EQ(task(holder).state, TaskState::kRunning);
  say_takes_checkpoints(holder);
  const auto urgent = accept(sensitive("a", 1000));
  const auto waits = accept(shared("c", 300));
  pump();
  ASSERT_EQ(task(urgent).state, TaskState::kQueued);
  const auto looks = keeper_->looks_now(waits);
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_THAT(looks[0].refused, HasSubstr(fmt::format("kept for task {}", urgent)));
}

}  // namespace
}  // namespace tierpilot::testing
