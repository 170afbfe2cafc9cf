// A dataset that is removed is there for everybody until that is on disk, and then for nobody.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/data/data_safety_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Version = std::pair<std::string, uint64_t>;
using RemovalTest = DataSafetyTest;

TEST_F(RemovalTest, ARemovalThatCouldNotBeWrittenDropsNothing) {
  auto n = join("n");
  add_dataset("d", 4096, "n");
  break_store("ALTER TABLE datasets RENAME TO away");
  EXPECT_FALSE(remove("d"));
  EXPECT_THAT(n->dropped, IsEmpty());
  ASSERT_TRUE(state_->catalog.find("d"));
  EXPECT_TRUE(state_->catalog.find("d")->replicas.contains("n"));
  break_store("ALTER TABLE away RENAME TO datasets");
  EXPECT_TRUE(remove("d"));
  EXPECT_THAT(n->dropped, ElementsAre(Version{"d", UINT64_MAX}));
}

// It is still there after a crash, or a write that fails.
TEST_F(RemovalTest, WhoAsksAgainForARemovalIsAnsweredOnceItIsOnDisk) {
  join("n");
  add_dataset("d", 4096, "n");
  break_store("ALTER TABLE datasets RENAME TO away");
  std::vector<Status> told;
  for (int i = 0; i < 2; ++i)
    datasets_->remove("d", [&](Status status) { told.push_back(std::move(status)); });
  EXPECT_TRUE(told.empty());
  ASSERT_TRUE(posts_.run_until([&] { return told.size() == 2; }));
  for (const auto& status : told) EXPECT_EQ(status.error().code, ErrorCode::kIo);
}

// A power cut would undo it.
TEST_F(RemovalTest, ARemovalIsToldOnceItIsOnDisk) {
  join("n");
  for (const auto* name : {"a", "d", "z"}) add_dataset(name, 4096, "n");
  const auto listed = [&] {
    std::vector<std::string> names;
    for (const auto* entry = state_->catalog.next_told(""); entry;
         entry = state_->catalog.next_told(entry->dataset.name))
      names.push_back(entry->dataset.name);
    return names;
  };
  auto reads = spec();
  reads.datasets = {{"d", false}};
  hold_disk();
  for (const auto* name : {"d", "z"}) datasets_->remove(name, [](Status) {});
  ASSERT_TRUE(state_->catalog.told("d"));
  EXPECT_TRUE(state_->catalog.told("d")->replicas.contains("n"));
  EXPECT_THAT(listed(), ElementsAre("a", "d", "z"));
  const auto refused = submit({reads});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("just being removed"));
  release_disk();
  EXPECT_FALSE(state_->catalog.told("d"));
  EXPECT_THAT(listed(), ElementsAre("a"));
  EXPECT_THAT(submit({reads}).error().message, HasSubstr("does not exist"));
}

TEST_F(RemovalTest, ACrashRightAfterARemovalForgetsNoReplica) {
  join("n");
  add_dataset("d", 4096, "n");
  datasets_->remove("d", [](Status) {});
  std::optional<Result<Dataset>> added;
  datasets_->add("", "d", ZeroSource{1}, "n", [&](auto made) { added = std::move(made); });
  ASSERT_TRUE(added && !*added);
  EXPECT_THAT(added->error().message, HasSubstr("just being removed"));
  restart();  // on disk, and nobody has been told
  EXPECT_FALSE(state_->catalog.find("d"));
  auto back = come_back("n", 7, {{"d", {1, 4096, false, true}}});
  EXPECT_THAT(back->dropped, ElementsAre(Version{"d", UINT64_MAX}));
}

}  // namespace
}  // namespace tierpilot::testing
