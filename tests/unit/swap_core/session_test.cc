// A front end without a framework: what it saves comes back as it was, and a budget is kept.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "swap/tierpilot_swap.h"
#include "tests/unit/swap_core/front_end.h"

namespace {

using nlohmann::json;
using tierpilot::swap::FrontEnd;
using tierpilot::swap::kSize;

TEST(Session, WhatLeavesComesBackAsItWas) {
  for (const auto* policy : {"swap-all", "swap", "capuchin", "vdnn", "none"}) {
    FrontEnd front(policy, 1);
    for (int step = 0; step < 5; ++step) front.step(20);
    tierpilot_swap_begin(front.swap());
    const auto said = front.said("statistics");
    EXPECT_EQ(said["steps"], 5) << policy;
    EXPECT_EQ(said["saves"], 100) << policy;
    EXPECT_EQ(said["copies_in"] > 0, std::string(policy) != "none" || said["known_steps"] == 0)
        << policy;
    for (const auto& tier : front.said("tiers")) EXPECT_EQ(tier["used_bytes"], 0) << policy;
  }
}

// Neither before the step is known nor by its plan.
TEST(Session, WithAllTheRoomOfTheWorldNothingLeaves) {
  FrontEnd front("swap");
  for (int step = 0; step < 4; ++step) front.step(20);
  EXPECT_EQ(front.said("statistics")["known_steps"], 1);
  EXPECT_EQ(front.said("statistics")["copies_out"], 0);
}

TEST(Session, AStepThatGoesOnOtherwiseIsStillRight) {
  FrontEnd front("swap", 1);
  for (const size_t layers : {20U, 20U, 7U, 20U, 30U, 3U, 20U, 30U}) front.step(layers);
  EXPECT_GE(front.said("statistics")["known_steps"], 4);
}

TEST(Session, AForwardPassWithoutABackwardPassIsForgotten) {
  FrontEnd front("swap-all");
  for (size_t layer = 0; layer < 10; ++layer) front.save(layer);
  FrontEnd other("swap-all");
  for (int i = 0; i < 3; ++i) other.step(4);
  for (size_t layer = 0; layer < 10; ++layer) EXPECT_TRUE(front.use_and_drop());
  front.step(10);
}

// Its id is given again to what is saved then: a copy is asked for once.
TEST(Session, WhatIsDroppedWhileOthersAreSavedComesBackForNobody) {
  FrontEnd front("swap-all");
  auto* const swap = front.swap();
  std::vector<char> data(kSize);
  const auto save = [&](uint64_t place) {
    const tierpilot_swap_storage storage{
        .place = place, .kind = 1, .flags = 0, .data = data.data(), .bytes = kSize};
    return tierpilot_swap_save(swap, &storage);
  };
  const auto leaves = [&](tierpilot_swap_id id) {
    tierpilot_swap_id left[8];
    while (tierpilot_swap_left(swap, left, 8) == 0) std::this_thread::yield();
    EXPECT_EQ(left[0], id);
  };
  const auto first = save(1);
  leaves(first);
  const auto dropped = save(2);
  if (tierpilot_swap_drop(swap, dropped)) leaves(dropped);
  const auto again = save(3);
  ASSERT_EQ(again, dropped);
  leaves(again);
  tierpilot_swap_id ahead[8];
  ASSERT_EQ(tierpilot_swap_ahead(swap, ahead, 8), 2U);
  EXPECT_EQ(ahead[0], again);
  EXPECT_EQ(ahead[1], first);
  for (const auto id : {again, first}) tierpilot_swap_drop(swap, id);
}

TEST(Session, SaysWhichSegmentsAreComputedAgain) {
  FrontEnd front("checkpoint");
  for (int step = 0; step < 2; ++step) {
    for (const uint64_t place : {1, 2}) {
      const bool again = tierpilot_swap_segment_begin(front.swap(), place, 8) == 1;
      EXPECT_EQ(again, step == 1);
      front.save(place);
      tierpilot_swap_segment_end(front.swap(), 1);
    }
    for (int layer = 0; layer < 2; ++layer) front.use_and_drop();
    tierpilot_swap_begin(front.swap());
    const auto said = front.said("step");
    ASSERT_EQ(said["segments"].size(), 2U);
    for (const auto& life : said["segments"]) {
      EXPECT_EQ(life["again"], step == 1);
      EXPECT_GE(life["ended_ns"], life["began_ns"]);
      EXPECT_LE(life["ended_ns"], said["step_ns"]);
    }
    EXPECT_EQ(said["segments"][1]["place"], 2);
    EXPECT_LE(said["segments"][0]["ended_ns"], said["segments"][1]["began_ns"]);
  }
}

TEST(Session, ATierThatIsFullKeepsTheRestHere) {
  FrontEnd front("swap-all", 1, "memory=4MiB");
  for (int step = 0; step < 3; ++step) front.step(12);
  EXPECT_GT(front.said("statistics")["refused"], 0);
}

TEST(Session, SaysHowEachStorageFared) {
  FrontEnd front("swap-all");
  front.step(6);
  tierpilot_swap_begin(front.swap());
  const auto step = front.said("step");
  ASSERT_EQ(step["storages"].size(), 6U);
  for (const auto& life : step["storages"]) {
    EXPECT_EQ(life["bytes"], kSize);
    EXPECT_GE(life["used_ns"], life["saved_ns"]);
    EXPECT_GE(life["ended_ns"], life["used_ns"]);
    EXPECT_LE(life["ended_ns"], step["step_ns"]);
  }
}

// A program that reads data or waits between two steps is not slow by its plan.
TEST(Session, WhatFollowsTheLastUseIsNoneOfThePasses) {
  FrontEnd front("swap-all");
  front.step(6);
  constexpr int kPauseMs = 200;
  std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  tierpilot_swap_begin(front.swap());
  const auto said = front.said("statistics");
  const int64_t passes = said["last_passes_ns"], step = said["last_step_ns"];
  EXPECT_GT(passes, 0);
  EXPECT_GE(step - passes, kPauseMs * int64_t{1'000'000});
  EXPECT_GE(said["last_others_ns"], 0);
  EXPECT_LE(said["last_others_ns"], passes);
}

TEST(Session, InAForkedChildNothingIsTakenAndNothingIsHad) {
  FrontEnd front("swap-all");
  for (size_t layer = 0; layer < 4; ++layer) front.save(layer);
  const auto child = fork();
  if (child == 0) {
    char data[8] = "";
    const tierpilot_swap_storage storage{
        .place = 1, .kind = 1, .flags = 0, .data = data, .bytes = 8};
    const bool right = tierpilot_swap_save(front.swap(), &storage) == 0 &&
                       tierpilot_swap_use(front.swap(), 1) == TIERPILOT_SWAP_LOST &&
                       tierpilot_swap_wait(front.swap(), 1) == TIERPILOT_SWAP_LOST;
    tierpilot_swap_close(front.swap());
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (size_t layer = 0; layer < 4; ++layer) EXPECT_TRUE(front.use_and_drop());
}

TEST(Session, ABudgetThatIsTooSmallIsSaidOnceWithWhatIsNeeded) {
  FrontEnd front("swap", 1 << 20), roomy("swap");
  char text[256] = "", few[9] = "";
  EXPECT_EQ(tierpilot_swap_warning(front.swap(), text, sizeof text), 0U) << "nothing is known yet";
  for (int step = 0; step < 3; ++step) front.step(8), roomy.step(8);
  EXPECT_EQ(tierpilot_swap_warning(front.swap(), text, sizeof text), 0U) << "of one step only";
  EXPECT_GT(tierpilot_swap_warning(front.swap(), text, sizeof text), 20U);
  EXPECT_NE(std::strstr(text, "budget of 1 MiB is too small"), nullptr) << text;
  EXPECT_EQ(tierpilot_swap_warning(front.swap(), text, sizeof text), 0U);
  EXPECT_EQ(tierpilot_swap_warning(roomy.swap(), text, sizeof text), 0U);

  const tierpilot_swap_settings settings{
      .size = sizeof settings, .budget_bytes = 1 << 30, .plan_file = "/"};
  auto* unread = tierpilot_swap_open(&settings, text, sizeof text);
  ASSERT_NE(unread, nullptr) << text;
  EXPECT_GT(tierpilot_swap_warning(unread, few, sizeof few), 20U) << "its whole length";
  EXPECT_STREQ(few, "kept pla");
  EXPECT_EQ(tierpilot_swap_warning(unread, few, sizeof few), 0U);
  tierpilot_swap_close(unread);
}

TEST(Session, ThatTiersAreFullIsSaidAndNotThatTheBudgetIsTooSmall) {
  FrontEnd front("swap", 1 << 20, "memory=1MiB");
  char text[256] = "";
  std::string all;
  for (int step = 0; step < 6; ++step) {
    front.step(8);
    if (tierpilot_swap_warning(front.swap(), text, sizeof text) > 0) all += text;
  }
  EXPECT_GT(front.said("statistics")["refused"], 0);
  EXPECT_NE(all.find("every tier is full; name more tiers"), std::string::npos) << all;
  EXPECT_EQ(all.find("too small"), std::string::npos) << all;
  EXPECT_EQ(all.find("budget", all.find("budget") + 1), std::string::npos) << "once: " << all;
}

TEST(Session, ATierOnATmpfsIsSaidOnceToBeMemory) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  FrontEnd front("swap", 1 << 30, "memory=16MiB,dir:/dev/shm=16MiB"), roomy("swap");
  char text[256] = "";
  ASSERT_GT(tierpilot_swap_warning(front.swap(), text, sizeof text), 0U);
  EXPECT_NE(std::strstr(text, "tier 'dir:/dev/shm' is on a tmpfs, which is memory"), nullptr)
      << text;
  EXPECT_EQ(tierpilot_swap_warning(front.swap(), text, sizeof text), 0U);
  EXPECT_EQ(tierpilot_swap_warning(roomy.swap(), text, sizeof text), 0U);
}

TEST(Session, WhereMemoryRanOutTheBudgetIsWhatWasHeldAndThatIsSaid) {
  constexpr int64_t kWanted = int64_t{1} << 40;
  FrontEnd front_end("none", kWanted);
  char text[256] = "";
  EXPECT_EQ(tierpilot_swap_warning(front_end.swap(), text, sizeof text), 0U);
  for (size_t layer = 0; layer < 4; ++layer) front_end.save(layer);
  tierpilot_swap_failed(front_end.swap());
  const auto budget = front_end.said("statistics").at("budget_bytes").get<int64_t>();
  EXPECT_GT(budget, 4 * kSize);
  EXPECT_LT(budget, kWanted / 2);
  ASSERT_GT(tierpilot_swap_warning(front_end.swap(), text, sizeof text), 0U);
  EXPECT_NE(std::strstr(text, "memory ran out"), nullptr) << text;
  EXPECT_NE(std::strstr(text, std::to_string(budget >> 20).c_str()), nullptr) << text;
  EXPECT_EQ(tierpilot_swap_warning(front_end.swap(), text, sizeof text), 0U);
  tierpilot_swap_failed(front_end.swap());
  EXPECT_EQ(front_end.said("statistics").at("budget_bytes").get<int64_t>(), budget)
      << "once a step";
}

// Memory in pieces that are too small: the device holds as much as it was thought to have.
TEST(Session, WhereMemoryRunsOutAgainAndAgainLessIsAimedAt) {
  FrontEnd front_end("swap", int64_t{1} << 40);
  int64_t last = int64_t{1} << 40;
  for (int step = 0; step < 4; ++step) {
    front_end.save(0);
    tierpilot_swap_failed(front_end.swap());
    const auto budget = front_end.said("statistics").at("budget_bytes").get<int64_t>();
    EXPECT_LE(budget, last - last / 8);
    last = budget;
    EXPECT_TRUE(front_end.use_and_drop());
  }
}

TEST(Session, WhoTriesWhatNeverFitsKeepsHalfOfTheBudget) {
  FrontEnd front_end("none", int64_t{1} << 40);
  int64_t first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    front_end.save(0, 64 * kSize);
    tierpilot_swap_failed(front_end.swap());
    last = front_end.said("statistics").at("budget_bytes").get<int64_t>();
    if (first == 0) first = last;
    EXPECT_TRUE(front_end.use_and_drop());
  }
  EXPECT_LT(last, first);
  EXPECT_GE(last, first / 2);
}

TEST(Session, NonsenseIsNoCrash) {
  FrontEnd front("swap-all");
  auto* swap = front.swap();
  for (const tierpilot_swap_id id : {0U, 1U, 7U, 0xffffffffU}) {
    EXPECT_EQ(tierpilot_swap_use(swap, id), TIERPILOT_SWAP_LOST);
    EXPECT_EQ(tierpilot_swap_wait(swap, id), TIERPILOT_SWAP_LOST);
    EXPECT_EQ(tierpilot_swap_drop(swap, id), 0);
    tierpilot_swap_release(swap, id);
    tierpilot_swap_held(swap, id);
    tierpilot_swap_fetch(swap, id, nullptr, 0);
  }
  char data[8] = "";
  tierpilot_swap_storage storage{.place = 1, .kind = 1, .flags = 0, .data = data, .bytes = 0};
  EXPECT_EQ(tierpilot_swap_save(swap, &storage), 0U);
  storage.bytes = -5;
  EXPECT_EQ(tierpilot_swap_save(swap, &storage), 0U);
  EXPECT_EQ(front.said("nonsense"), json::object());
  EXPECT_EQ(tierpilot_swap_bytes("1.5GiB"), 1'610'612'736);
  EXPECT_EQ(tierpilot_swap_bytes("much"), -1);
}

TEST(Session, SettingsThatAreWrongAreNamed) {
  const auto error_of = [](tierpilot_swap_settings settings) {
    char error[256] = "";
    EXPECT_EQ(tierpilot_swap_open(&settings, error, sizeof error), nullptr);
    return std::string(error);
  };
  const auto size = static_cast<uint32_t>(sizeof(tierpilot_swap_settings));
  EXPECT_NE(error_of({.size = 4, .budget_bytes = 1}).find("another version"), std::string::npos);
  EXPECT_NE(error_of({.size = size, .budget_bytes = 0}).find("above 0"), std::string::npos);
  EXPECT_NE(error_of({.size = size, .budget_bytes = 1, .policy = "x"}).find("'x' is not known"),
            std::string::npos);
}

// Half of each step's saves stand in a segment.
TEST(Session, SegmentsAreComputedAgainOnceTheyWereMeasured) {
  FrontEnd front("checkpoint");
  auto* swap = front.swap();
  tierpilot_swap_segment_end(swap, 1);  // of nothing
  for (int step = 0; step < 4; ++step) {
    for (size_t layer = 0; layer < 3; ++layer) front.save(layer);
    const bool again = tierpilot_swap_segment_begin(swap, 7, kSize) == 1;
    EXPECT_EQ(again, step > 0);
    EXPECT_EQ(tierpilot_swap_segment_begin(swap, 8, kSize), 0) << "within another";
    if (!again) {
      for (size_t layer = 3; layer < 6; ++layer) front.save(layer);
    }
    tierpilot_swap_segment_end(swap, 1);
    for (size_t layer = 0; layer < (again ? 3U : 6U); ++layer) EXPECT_TRUE(front.use_and_drop());
  }
  const auto said = front.said("statistics");
  EXPECT_EQ(said["segments"], 4);
  EXPECT_EQ(said["recomputed_segments"], 3);
  EXPECT_EQ(said["copies_out"], 0);
}

// Known steps are looked at no more, but for a bounded number of plans that are tried where one was
// slow, as on a busy machine; segments that begin in one later ask for a look, once.
TEST(Session, SegmentsOfAStepThatWasKnownWithoutThemAreMeasured) {
  FrontEnd front("swap");
  const auto learning_after = [&](int steps, bool segments) {
    for (int i = 0; i < steps; ++i) {
      if (segments) EXPECT_EQ(tierpilot_swap_segment_begin(front.swap(), 7, 8), 0);
      for (size_t layer = 0; layer < 3; ++layer) front.save(layer);
      if (segments) tierpilot_swap_segment_end(front.swap(), 1);
      for (size_t layer = 0; layer < 3; ++layer) EXPECT_TRUE(front.use_and_drop());
    }
    return front.said("statistics")["learning_steps"].get<int>();
  };
  constexpr int kMostTries = 40;
  const auto known = learning_after(100, false);
  EXPECT_LE(known, kMostTries);
  EXPECT_GT(learning_after(6, true), known);
  EXPECT_LE(learning_after(100, true), kMostTries + 6);
}

// Threads that save, ask and drop in one session, and let go of each other's memory.
TEST(Session, SeveralThreadsAtOnce) {
  FrontEnd shared("swap-all");
  auto* swap = shared.swap();
  std::mutex mutex;
  std::map<tierpilot_swap_id, std::vector<char>> memory;
  const auto let_go = [&] {
    tierpilot_swap_id ids[8];
    const std::lock_guard lock(mutex);
    const auto count = tierpilot_swap_left(swap, ids, 8);
    for (size_t i = 0; i < count; ++i) memory.erase(ids[i]);
  };
  const auto work = [&](char number) {
    constexpr size_t kBytes = 1 << 16;
    for (int round = 0; round < 50; ++round) {
      std::vector<char> data(kBytes, number);
      const tierpilot_swap_storage storage{
          .place = 5, .kind = 1, .flags = 0, .data = data.data(), .bytes = kBytes};
      tierpilot_swap_id id = 0;
      {
        const std::lock_guard lock(mutex);
        id = tierpilot_swap_save(swap, &storage);
        memory[id] = std::move(data);
      }
      if (round % 2) std::this_thread::sleep_for(std::chrono::microseconds(100));
      let_go();
      {
        const std::lock_guard lock(mutex);
        auto where = tierpilot_swap_use(swap, id);
        if (where == TIERPILOT_SWAP_AWAY) {
          memory[id].resize(kBytes);
          tierpilot_swap_fetch(swap, id, memory[id].data(), 0);
          where = tierpilot_swap_wait(swap, id);
        }
        EXPECT_EQ(where, TIERPILOT_SWAP_HERE);
        EXPECT_EQ(memory[id], std::vector<char>(kBytes, number));
        if (tierpilot_swap_drop(swap, id) == 0) memory.erase(id);
      }
      let_go();
    }
  };
  std::vector<std::thread> threads;
  for (char number = 1; number <= 4; ++number) threads.emplace_back(work, number);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared.said("statistics")["saves"], 200);
}

}  // namespace
