// States of optimisers in the hands of a front end without a framework.
#include <gtest/gtest.h>

#include "tests/unit/swap_core/front_end.h"

namespace {

using tierpilot::swap::FrontEnd;
using tierpilot::swap::kSize;

TEST(SessionStates, ComeBackAsTheyWereAndAreNoneOfAStepsSaves) {
  for (const auto* policy : {"swap-all", "swap", "none"}) {
    FrontEnd front(policy);
    for (int step = 0; step < 5; ++step) {
      front.step(4);
      EXPECT_TRUE(front.take_and_keep_states(6)) << policy;
      if (step % 2) front.reap();
    }
    EXPECT_TRUE(front.take_and_keep_states(0));
    tierpilot_swap_begin(front.swap());
    while (front.said("tiers")[0]["used_bytes"] != 0) front.reap();
    const auto said = front.said("statistics");
    EXPECT_EQ(said["steps"], 5) << policy;
    EXPECT_EQ(said["saves"], 20) << policy;
    EXPECT_EQ(said["state_saves"], 30) << policy;
    EXPECT_EQ(said["state_bytes"], 0) << policy;
  }
}

TEST(SessionStates, AreOnTheirWayBackBehindTheLastUse) {
  FrontEnd front("swap-all");
  for (int step = 0; step < 4; ++step) {
    for (size_t layer = 0; layer < 6; ++layer) front.save(layer);
    front.let_states_leave();
    EXPECT_EQ(front.states_here(), 0U);
    for (size_t layer = 0; layer < 6; ++layer) EXPECT_TRUE(front.use_and_drop());
    EXPECT_EQ(front.states_here() > 0, step > 0);
    EXPECT_TRUE(front.take_and_keep_states(3));
  }
}

TEST(SessionStates, StayOnceAStepHasShownThatThereIsRoom) {
  FrontEnd roomy("swap"), tight("swap", 1);
  for (auto* front : {&roomy, &tight}) {
    for (int step = 0; step < 30; ++step) {
      front->step(4);
      EXPECT_TRUE(front->take_and_keep_states(2));
    }
  }
  tight.let_states_leave();
  EXPECT_EQ(tight.states_here(), 0U);
  EXPECT_EQ(roomy.states_here(), 2U);
  // Whether a step's saves leave is tried now and then on a busy machine: they are none of it.
  roomy.step(4);
  const auto before = roomy.said("statistics")["copies_out"];
  EXPECT_TRUE(roomy.take_and_keep_states(2));
  for (int i = 0; i < 50 && roomy.states_here() == 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    roomy.reap();
  }
  EXPECT_EQ(roomy.states_here(), 2U);
  EXPECT_EQ(roomy.said("statistics")["copies_out"], before);
}

// As where two optimisers step one after the other: nothing is computed between them.
TEST(SessionStates, DoNotStayForTheRoomThatIsThereBetweenSteps) {
  constexpr size_t kLayers = 30, kStates = 20;
  FrontEnd first("none");
  first.step(kLayers);  // the process has what it needs itself
  tierpilot_swap_begin(first.swap());
  const auto held = first.said("statistics").at("device_peak_bytes").get<int64_t>();
  FrontEnd front("capuchin", held + held / 19 + 2 * kSize);
  for (int step = 0; step < 6; ++step) {
    front.step(kLayers);
    EXPECT_TRUE(front.take_and_keep_states(kStates));
    tierpilot_swap_begin(front.swap());
    tierpilot_swap_begin(front.swap());
  }
  front.let_states_leave();
  EXPECT_EQ(front.states_here(), 0U);
}

}  // namespace
