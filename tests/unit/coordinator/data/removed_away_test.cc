// A dataset that is removed while one of its nodes is away.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;

class RemovedWhileAwayTest : public CoreTest {
 protected:
  void SetUp() override {
    join("n")->made = kOld;
    join("m");
    add_dataset("d", 4096, "n");
    clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
    membership_->expire();
    join("n");
    std::optional<Status> removed;
    datasets_->remove("d", [&](Status s) { removed = s; });
    ASSERT_TRUE(posts_.run_until([&] { return removed.has_value(); }));
    restart();
    join("n")->made = kNew;
  }
  std::shared_ptr<FakeNode> come_back(bool has_it = true) {
    auto back = std::make_shared<FakeNode>();
    std::vector<std::pair<std::string, ReplicaState>> held;
    if (has_it) held = {{"d", {1, 4096, true, false, false, kOld}}};
    EXPECT_TRUE(membership_->join(facts("m"), back, held, {}));
    return back;
  }

  static constexpr ContentDigest kOld{0, 1}, kNew{0, 2};
};

TEST_F(RemovedWhileAwayTest, ANodeThatWasAwayDropsItOnce) {
  EXPECT_THAT(come_back()->dropped, ElementsAre(std::pair<std::string, uint64_t>{"d", UINT64_MAX}));
  come_back(false);
  EXPECT_TRUE(come_back(false)->dropped.empty());
}

TEST_F(RemovedWhileAwayTest, WhatHasItsNameNowIsNotTakenForIt) {
  add_dataset("d", 4096, "n");
  auto back = come_back();
  EXPECT_TRUE(back->dropped.empty()) << "the new one may be there too";
  EXPECT_THAT(back->discarded, ElementsAre(std::pair<std::string, uint64_t>{"d", 1}));
  EXPECT_FALSE(state_->catalog.find("d")->replicas.contains("m"));
}

}  // namespace
}  // namespace tierpilot::testing
