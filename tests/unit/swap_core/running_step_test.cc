// Where one step ends and the next begins, as nobody says so.
#include "swap/running_step.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

class Step : public testing::Test {
 protected:
  SavedStorage place(uint64_t place) const { return {.place = place, .bytes = 8}; }
  void save(uint64_t at) {
    slots_.push_back({.state = Slot::State::kHere, .bytes = 8});
    step_.save(static_cast<Id>(slots_.size()), slots_.back(), place(at), 1);
    seen_.saves.push_back(place(at));
  }
  void use(size_t save) {
    ASSERT_TRUE(step_.spend(slots_[save]));
    step_.use(slots_[save], 2);
    seen_.uses.push_back(static_cast<uint32_t>(save));
  }

  RunningStep step_;
  std::vector<Slot> slots_;
  ObservedStep seen_;
};

TEST_F(Step, IsOverWhenAllIsAskedForOrDropped) {
  EXPECT_FALSE(step_.over_before(place(1), seen_)) << "nothing has been saved";
  save(1);
  save(2);
  EXPECT_FALSE(step_.over_before(place(3), seen_));
  use(1);
  EXPECT_TRUE(step_.spend(slots_[0])) << "dropped";
  EXPECT_FALSE(step_.spend(slots_[0])) << "once";
  EXPECT_TRUE(step_.spent());
  EXPECT_TRUE(step_.over_before(place(3), seen_));
}

TEST_F(Step, IsOverWhenABackwardPassSavesWhatItBeganWith) {
  save(1);
  save(2);
  EXPECT_FALSE(step_.over_before(place(1), seen_)) << "in a forward pass";
  use(1);
  EXPECT_FALSE(step_.over_before(place(2), seen_)) << "recomputed";
  EXPECT_TRUE(step_.over_before(place(1), seen_));
}

TEST_F(Step, IsOverWhenABackwardPassSavesMoreThanItRecomputes) {
  save(1);
  save(2);
  use(1);
  for (int i = 0; i < 17; ++i) {
    EXPECT_FALSE(step_.over_before(place(2), seen_)) << i;
    step_.save_late();
  }
  EXPECT_TRUE(step_.over_before(place(2), seen_));
}

TEST_F(Step, TellsHowItsStoragesFared) {
  save(7);
  use(0);
  step_.life_of(slots_[0])->ended_ns = 3;
  const auto life = step_.end({.step = {}, .step_ns = 4, .peak_bytes = 5});
  ASSERT_EQ(life.storages.size(), 1U);
  EXPECT_EQ(life.storages[0].place, 7U);
  EXPECT_EQ(life.storages[0].used_ns, 2);
  EXPECT_EQ(life.storages[0].ended_ns, 3);
  EXPECT_EQ(life.storages[0].left_ns, -1);
  EXPECT_EQ(life.step_ns, 4);
  EXPECT_EQ(step_.life_of(slots_[0]), nullptr) << "it is another step's now";
  EXPECT_FALSE(step_.has(slots_[0]));
}

}  // namespace
}  // namespace tierpilot::swap
