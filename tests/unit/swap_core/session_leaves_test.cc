// What leaves of steps that are not known yet.
#include <gtest/gtest.h>

#include "tests/unit/swap_core/front_end.h"

#if defined(__SANITIZE_ADDRESS__)
// What is freed counts as resident while the sanitizer keeps it, and budgets are of that.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}
#endif

namespace {

using tierpilot::swap::FrontEnd;
using tierpilot::swap::kSize;

constexpr int64_t kRoom = 128 * kSize;  // of the budget, beside the process

int64_t copies_out(FrontEnd& front) {
  return front.said("statistics")["copies_out"].get<int64_t>();
}

// What the process holds itself, and as much again, so that half of it is taken.
int64_t budget() {
  FrontEnd front("none");
  front.step(1);
  tierpilot_swap_begin(front.swap());
  return 2 * front.said("statistics").at("device_peak_bytes").get<int64_t>() + kRoom;
}

void save(FrontEnd& front, size_t layers) {
  for (size_t layer = 0; layer < layers; ++layer) front.save(layer);
}

void use(FrontEnd& front, size_t layers) {
  for (size_t layer = 0; layer < layers; ++layer) EXPECT_TRUE(front.use_and_drop());
}

TEST(SessionLeaves, NothingOfAStepThatIsNotKnownAsLongAsItPlainlyFits) {
  for (const auto* policy : {"swap", "capuchin", "swap-all", "vdnn", "q-published"}) {
    FrontEnd front(policy, budget());
    for (const size_t layers : {20U, 7U, 30U, 12U}) front.step(layers);
    const bool makes_room = std::string(policy) == "swap" || std::string(policy) == "capuchin";
    EXPECT_EQ(copies_out(front) == 0, makes_room) << policy;
  }
}

TEST(SessionLeaves, AllOfItOnceHalfOfTheBudgetIsNeeded) {
  constexpr size_t kLayers = 100;
  FrontEnd front("swap", budget());
  save(front, kLayers / 4);
  EXPECT_EQ(copies_out(front), 0);
  use(front, kLayers / 4);
  tierpilot_swap_begin(front.swap());
  save(front, kLayers);
  for (int i = 0; i < 5'000 && copies_out(front) < int64_t{kLayers}; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    front.reap();
  }
  EXPECT_EQ(copies_out(front), int64_t{kLayers}) << "also what stayed at first";
  use(front, kLayers);
  tierpilot_swap_begin(front.swap());
  EXPECT_EQ(front.said("statistics")["over_budget_steps"], 0);
}

// Gradients of weights and workspaces come into being in a backward pass.
TEST(SessionLeaves, WhatStayedWhereTheBackwardPassNeedsItsRoom) {
  constexpr size_t kLayers = 24;
  FrontEnd front("swap", budget());
  save(front, kLayers);
  EXPECT_EQ(copies_out(front), 0);
  std::vector<std::vector<char>> gradients;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    for (int i = 0; i < 8; ++i) gradients.emplace_back(kSize, char{1});
    EXPECT_TRUE(front.use_and_drop());
  }
  EXPECT_GT(copies_out(front), 0);
}

// As a loop that goes around more often, or less.
TEST(SessionLeaves, AStepThatBeginsAsAKnownOneIsLearnedToo) {
  FrontEnd front("swap");
  for (int step = 0; step < 6; ++step) front.step(20);
  for (int step = 0; step < 5; ++step)
    for (const size_t layers : {30, 20, 10}) front.step(layers);
  tierpilot_swap_begin(front.swap());
  EXPECT_EQ(front.said("statistics")["known_steps"], 3);
}

TEST(SessionLeaves, AllOfItWhereMemoryRanOutBefore) {
  FrontEnd front("swap");
  save(front, 4);
  tierpilot_swap_failed(front.swap());
  use(front, 4);
  front.step(8);
  EXPECT_GT(copies_out(front), 0);
}

}  // namespace
