// Two programs on one tier: each plans on what is left of it for him, as his copies tell.
#include "swap/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

namespace tierpilot::swap {
namespace {

using SteadyClock = std::chrono::steady_clock;

// One copy after the other, each way, whoever asks.
class SharedLink {
 public:
  void carry(int64_t bytes) {
    SteadyClock::time_point done;
    {
      const std::lock_guard lock(mutex_);
      free_at_ =
          std::max(free_at_, SteadyClock::now()) + std::chrono::nanoseconds(bytes / kBytesPerNs);
      done = free_at_;
    }
    std::this_thread::sleep_until(done);
  }

 private:
  static constexpr int64_t kBytesPerNs = 1;
  std::mutex mutex_;
  SteadyClock::time_point free_at_;
};

class LinkedTier : public Tier {
 public:
  explicit LinkedTier(SharedLink& link) : link_(link) {}
  const std::string& name() const override { return name_; }
  std::string_view kind() const override { return "memory"; }
  int64_t capacity_bytes() const override { return int64_t{1} << 40; }
  Status write(int64_t, const std::byte*, int64_t bytes, Staging&) override {
    link_.carry(bytes);
    return {};
  }
  Status read(int64_t, std::byte*, int64_t bytes, Staging&) override {
    link_.carry(bytes);
    return {};
  }

 private:
  SharedLink& link_;
  std::string name_ = "linked";
};

// Nothing can be had while it copies.
class WithoutMemory : public Tier {
 public:
  const std::string& name() const override { return name_; }
  std::string_view kind() const override { return "memory"; }
  int64_t capacity_bytes() const override { return int64_t{1} << 40; }
  Status write(int64_t, const std::byte*, int64_t, Staging&) override { throw std::bad_alloc(); }
  Status read(int64_t, std::byte*, int64_t, Staging&) override { throw std::bad_alloc(); }

 private:
  std::string name_ = "without memory";
};

// A program that lets storages leave as fast as they do.
class Program {
 public:
  explicit Program(std::unique_ptr<Tier> tier)
      : transfers_(only(std::move(tier)), *device_, {.out = 1, .in = 1}, mutex_, slots_,
                   [](const Slot&, bool) {}) {}
  explicit Program(SharedLink& link) : Program(std::make_unique<LinkedTier>(link)) {}

  void send(int count) {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < count; ++i) transfers_.copy_out(slots_.add(kBytes, nullptr));
    transfers_.wait(lock, [&] { return slots_.totals().leaving == 0; });
  }
  double gb_per_s() {
    const std::lock_guard lock(mutex_);
    return transfers_.link().gb_per_s;
  }

  Statistics statistics() {
    const std::lock_guard lock(mutex_);
    Statistics said;
    transfers_.add_to(said);
    return said;
  }

 private:
  static constexpr int64_t kBytes = 8 << 20;
  static std::shared_ptr<TierSet> only(std::unique_ptr<Tier> tier) {
    std::vector<MeasuredTier> tiers;
    tiers.push_back(
        {.tier = std::move(tier), .read_gb_per_s = 1, .write_gb_per_s = 1, .latency_ns = 0});
    return std::make_shared<TierSet>(std::move(tiers));
  }
  const std::unique_ptr<ComputeDevice> device_ = processor();
  std::mutex mutex_;
  SlotTable slots_;
  Transfers transfers_;
};

TEST(Transfers, TwoProgramsOnOneTierDoNotBothPlanOnAllOfIt) {
  SharedLink link;
  Program first(link), second(link);
  first.send(32);
  const double alone = first.gb_per_s();
  EXPECT_GT(alone, 0.4);
  std::jthread beside([&] { second.send(96); });
  first.send(96);
  beside.join();
  // Half of it each, were they to begin and end at the same time; whoever is late has it alone.
  EXPECT_LT(first.gb_per_s() + second.gb_per_s(), 1.6 * alone);
  const double beside_the_other = std::min(first.gb_per_s(), second.gb_per_s());
  EXPECT_LT(beside_the_other, 0.75 * alone);
  first.send(160);
  EXPECT_GT(first.gb_per_s(), 1.2 * beside_the_other) << "it has it to itself again";
}

TEST(Transfers, WhatThereIsNoMemoryToCopyForStays) {
  Program program(std::make_unique<WithoutMemory>());
  program.send(3);
  EXPECT_EQ(program.statistics().refused, 3);
  EXPECT_EQ(program.statistics().copies_out, 0);
}

}  // namespace
}  // namespace tierpilot::swap
