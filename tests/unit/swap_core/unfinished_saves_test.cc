// What an operator saves while it may still write it leaves once the operator has returned.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "swap/tierpilot_swap.h"
#include "tests/unit/swap_core/front_end.h"

namespace {

using tierpilot::swap::FrontEnd;
using tierpilot::swap::kSize;

TEST(UnfinishedSaves, WhatIsUnfinishedLeavesOnceItsThreadsOperatorIsFinished) {
  FrontEnd front("swap-all");
  auto* const swap = front.swap();
  std::vector<char> first(kSize, 1), second(kSize, 1);
  const auto save = [&](const std::vector<char>& data) {
    const tierpilot_swap_storage storage{.place = 1,
                                         .kind = 1,
                                         .flags = TIERPILOT_SWAP_UNFINISHED,
                                         .data = data.data(),
                                         .bytes = kSize};
    return tierpilot_swap_save(swap, &storage);
  };
  const auto one = save(first), dropped = save(second);
  // Another thread's operators say nothing of this one's.
  std::thread([&] { tierpilot_swap_finished(swap); }).join();
  EXPECT_EQ(tierpilot_swap_drop(swap, dropped), 0);
  const auto other = save(second);
  ASSERT_EQ(other, dropped);
  EXPECT_EQ(front.said("statistics")["copies_out"], 0);
  first.assign(kSize, 2);
  tierpilot_swap_finished(swap);
  tierpilot_swap_id left[8];
  for (size_t count = 0; count < 2; std::this_thread::yield())
    count += tierpilot_swap_left(swap, left, 8);
  first.assign(kSize, 0);
  for (const auto id : {one, other}) {
    ASSERT_EQ(tierpilot_swap_use(swap, id), TIERPILOT_SWAP_AWAY);
    tierpilot_swap_fetch(swap, id, first.data(), 0);
    EXPECT_EQ(tierpilot_swap_wait(swap, id), TIERPILOT_SWAP_HERE);
    EXPECT_EQ(std::ranges::count(first, id == one ? 2 : 1), kSize);
    tierpilot_swap_drop(swap, id);
  }
  tierpilot_swap_finished(swap);
  EXPECT_EQ(front.said("statistics")["copies_out"], 2);
}

// It stays until it is finished, then leaves.
TEST(UnfinishedSaves, OverItsBudgetWhatIsUnfinishedIsNotWaitedFor) {
  FrontEnd front("swap", 1);
  std::vector<char> data(kSize, 1);
  const tierpilot_swap_storage storage{.place = 1,
                                       .kind = 1,
                                       .flags = TIERPILOT_SWAP_UNFINISHED,
                                       .data = data.data(),
                                       .bytes = kSize};
  const auto id = tierpilot_swap_save(front.swap(), &storage);
  tierpilot_swap_id left[8];
  EXPECT_EQ(tierpilot_swap_left(front.swap(), left, 8), 0U);
  tierpilot_swap_finished(front.swap());
  EXPECT_EQ(tierpilot_swap_left(front.swap(), left, 8), 1U);
  EXPECT_EQ(left[0], id);
  tierpilot_swap_drop(front.swap(), id);
}

}  // namespace
