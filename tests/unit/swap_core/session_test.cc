// A front end without a framework: what it saves comes back as it was, and a budget is kept.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "swap/tierpilot_swap.h"

namespace {

using nlohmann::json;
constexpr int64_t kSize = 1 << 20;

class FrontEnd {
 public:
  explicit FrontEnd(const char* policy, int64_t budget = int64_t{1} << 40,
                    const char* tiers = "memory=256MiB") {
    const tierpilot_swap_settings settings{
        .size = sizeof settings, .budget_bytes = budget, .tiers = tiers, .policy = policy};
    char error[256] = "";
    swap_ = tierpilot_swap_open(&settings, error, sizeof error);
    EXPECT_NE(swap_, nullptr) << error;
  }
  ~FrontEnd() { tierpilot_swap_close(swap_); }

  tierpilot_swap* swap() { return swap_; }
  json said(const char* what) {
    std::string text(tierpilot_swap_describe(swap_, what, nullptr, 0), ' ');
    tierpilot_swap_describe(swap_, what, text.data(), text.size() + 1);
    return json::parse(text);
  }

  void save(size_t layer, int64_t bytes = kSize) {
    auto data = std::make_unique<char[]>(static_cast<size_t>(bytes));
    std::memset(data.get(), static_cast<int>(layer + 1), static_cast<size_t>(bytes));
    const tierpilot_swap_storage storage{
        .place = layer * 77 + 1, .kind = 1, .flags = 0, .data = data.get(), .bytes = bytes};
    const auto id = tierpilot_swap_save(swap_, &storage);
    ASSERT_NE(id, 0U);
    if (memory_.size() <= id) memory_.resize(id + 1);
    memory_[id] = std::move(data);
    of_layer_.push_back({id, bytes});
    reap();
  }

  void reap() {
    tierpilot_swap_id ids[4];
    while (const auto count = tierpilot_swap_left(swap_, ids, 4))
      for (size_t i = 0; i < count; ++i) memory_[ids[i]].reset();
  }

  // The backward pass's turn; whether every byte is as it was.
  bool use_and_drop() {
    const auto [id, bytes] = of_layer_.back();
    of_layer_.pop_back();
    auto where = tierpilot_swap_use(swap_, id);
    if (where == TIERPILOT_SWAP_AWAY) fetch(id, bytes);
    tierpilot_swap_id ids[4];
    const auto count = tierpilot_swap_ahead(swap_, ids, 4);
    for (size_t i = 0; i < count; ++i) fetch(ids[i], kSize);
    if (where != TIERPILOT_SWAP_HERE) where = tierpilot_swap_wait(swap_, id);
    bool same = where == TIERPILOT_SWAP_HERE && memory_[id] != nullptr;
    const auto expected = static_cast<char>(of_layer_.size() + 1);
    for (int64_t i = 0; same && i < bytes; ++i) same = memory_[id][i] == expected;
    if (tierpilot_swap_drop(swap_, id) == 0) memory_[id].reset();
    reap();
    return same;
  }

  // What an optimiser does with its states behind a step: each is asked for, changed, and kept.
  // Whether all bytes were as they were.
  bool take_and_keep_states(size_t count) {
    bool same = true;
    for (size_t i = 0; i < states_.size(); ++i) same = take_state(i) && same;
    states_.resize(count);
    ++round_;
    for (size_t i = 0; i < count; ++i) {
      auto data = std::make_unique<char[]>(kSize);
      std::memset(data.get(), static_cast<int>(round_ + i), kSize);
      const tierpilot_swap_storage storage{
          .place = i, .kind = 0, .flags = TIERPILOT_SWAP_STATE, .data = data.get(), .bytes = kSize};
      states_[i] = tierpilot_swap_save(swap_, &storage);
      if (memory_.size() <= states_[i]) memory_.resize(states_[i] + 1);
      memory_[states_[i]] = std::move(data);
      reap();
    }
    return same;
  }
  size_t states_here() const {
    return static_cast<size_t>(std::count_if(states_.begin(), states_.end(),
                                             [this](auto id) { return memory_[id] != nullptr; }));
  }
  void let_states_leave() {
    for (int i = 0; states_here() > 0 && i < 20'000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      reap();
    }
  }

  void step(size_t layers) {
    for (size_t layer = 0; layer < layers; ++layer) save(layer);
    for (size_t layer = 0; layer < layers; ++layer) EXPECT_TRUE(use_and_drop()) << layer;
  }

 private:
  struct Saved {
    tierpilot_swap_id id;
    int64_t bytes;
  };
  bool take_state(size_t i) {
    const auto id = states_[i];
    auto where = tierpilot_swap_use(swap_, id);
    if (where == TIERPILOT_SWAP_AWAY) fetch(id, kSize);
    if (where != TIERPILOT_SWAP_HERE) where = tierpilot_swap_wait(swap_, id);
    const auto expected = static_cast<char>(round_ + i);
    const bool same = where == TIERPILOT_SWAP_HERE && memory_[id] &&
                      std::count(memory_[id].get(), memory_[id].get() + kSize, expected) == kSize;
    if (tierpilot_swap_drop(swap_, id) == 0) memory_[id].reset();
    return same;
  }
  void fetch(tierpilot_swap_id id, int64_t bytes) {
    memory_[id] = std::make_unique<char[]>(static_cast<size_t>(bytes));
    tierpilot_swap_fetch(swap_, id, memory_[id].get(), 0);
  }

  tierpilot_swap* swap_ = nullptr;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<Saved> of_layer_;
  std::vector<tierpilot_swap_id> states_;
  size_t round_ = 0;
};

TEST(Session, WhatLeavesComesBackAsItWas) {
  for (const auto* policy : {"swap-all", "swap", "capuchin", "vdnn", "none"}) {
    FrontEnd front(policy);
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

// From the second step on a plan is there, and with all the room of the world it keeps everything.
TEST(Session, WithRoomNothingLeavesOnceTheStepIsKnown) {
  FrontEnd front("swap");
  front.step(20);
  tierpilot_swap_begin(front.swap());
  const auto first = front.said("statistics")["copies_out"].get<int>();
  for (int step = 0; step < 3; ++step) front.step(20);
  EXPECT_EQ(front.said("statistics")["copies_out"], first);
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

TEST(Session, StatesComeBackAsTheyWereAndAreNoneOfAStepsSaves) {
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

TEST(Session, StatesAreOnTheirWayBackBehindTheLastUse) {
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

TEST(Session, StatesStayOnceAStepHasShownThatThereIsRoom) {
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
  const auto before = roomy.said("statistics")["copies_out"];
  roomy.step(4);
  EXPECT_TRUE(roomy.take_and_keep_states(2));
  EXPECT_EQ(roomy.said("statistics")["copies_out"], before);
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
