// Datasets that nodes tell of and no catalog has.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/data/data_safety_fixture.h"

namespace tierpilot::testing {
namespace {

using StrayDatasetsTest = DataSafetyTest;

TEST_F(StrayDatasetsTest, StraysThatAreGoneAreForgotten) {
  join("n");
  for (int i = 0; i < 3; ++i) {
    const auto name = "s" + std::to_string(i);
    membership_->replica_changed("n", name, {1, 4096, false, true, true});
    EXPECT_EQ(state_->catalog.strays(name), std::set<std::string>{"n"});
    membership_->replica_changed("n", name, {1, 4096, false, false, false});
  }
  EXPECT_EQ(state_->catalog.stray_names(), 0u);
}

TEST_F(StrayDatasetsTest, StraysWithoutEndAreForgotten) {
  join("n");
  join("m");
  const ReplicaState held{1, 4096, false, true, true}, gone{1, 4096, false, false, false};
  constexpr size_t kMost = 100'000;
  for (size_t i = 0; i < kMost + 10; ++i)
    membership_->replica_changed("n", "s" + std::to_string(i), held);
  EXPECT_EQ(state_->catalog.stray_names(), kMost);
  membership_->replica_changed("m", "of-m", held);
  EXPECT_EQ(state_->catalog.stray_names(), kMost + 1) << "each node has so many of its own";
  membership_->replica_changed("n", "s0", held);
  membership_->replica_changed("n", "s0", gone);
  membership_->replica_changed("n", "s0", gone);
  state_->catalog.put({.name = "s1"});
  for (const auto* name : {"a", "b", "c"}) membership_->replica_changed("n", name, held);
  EXPECT_EQ(state_->catalog.stray_names(), kMost + 1) << "two went, and two of three came";
  state_->catalog.forget_node("n");
  membership_->replica_changed("n", "c", held);
  EXPECT_EQ(state_->catalog.strays("c"), std::set<std::string>{"n"});
  EXPECT_EQ(state_->catalog.stray_names(), 2u);
}

TEST_F(StrayDatasetsTest, OnlyWhatADatasetMayBeCalledIsAStray) {
  join("n");
  for (const auto& name : {std::string(), std::string(129, 's'), std::string(".s"),
                           std::string("a/b"), std::string("s\n")})
    membership_->replica_changed("n", name, {1, 4096, false, true, true});
  EXPECT_EQ(state_->catalog.stray_names(), 0u);
}

}  // namespace
}  // namespace tierpilot::testing
