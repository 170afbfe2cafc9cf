// A front end without a framework.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "swap/tierpilot_swap.h"

namespace tierpilot::swap {

inline constexpr int64_t kSize = 1 << 20;

class FrontEnd {
 public:
  explicit FrontEnd(const char* policy, int64_t budget = int64_t{1} << 40,
                    const char* tiers = "memory=256MiB", const char* plan_file = nullptr) {
    const tierpilot_swap_settings settings{.size = sizeof settings,
                                           .budget_bytes = budget,
                                           .tiers = tiers,
                                           .policy = policy,
                                           .plan_file = plan_file};
    char error[256] = "";
    swap_ = tierpilot_swap_open(&settings, error, sizeof error);
    EXPECT_NE(swap_, nullptr) << error;
  }
  ~FrontEnd() { tierpilot_swap_close(swap_); }

  tierpilot_swap* swap() { return swap_; }
  nlohmann::json said(const char* what) {
    std::string text;
    // Counts grow meanwhile.
    for (size_t bytes = 4096; text.size() < bytes;) {
      text.resize(bytes);
      bytes = tierpilot_swap_describe(swap_, what, text.data(), text.size() + 1);
      if (bytes <= text.size()) text.resize(bytes);
    }
    return nlohmann::json::parse(text);
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

}  // namespace tierpilot::swap
