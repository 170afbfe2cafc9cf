// What the parts of the pool promise to each other.
#include <optional>

#include "daemon/memory/pool/replicas/new_datasets.h"
#include "daemon/memory/pool/replicas/pool_room.h"
#include "daemon/memory/pool/replicas/private_copy.h"
#include "daemon/memory/pool/replicas/transfer.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

// Books without files: to remove a file that is not there is no error.
class PoolParts : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    options.fast_budget_bytes = 100;
    options.slow_budget_bytes = 100;
    auto tiers = PoolTiers::open(options);
    ASSERT_TRUE(tiers) << tiers.error().message;
    holdings.emplace(options, std::move(*tiers),
                     [this](const ReplicaChange& change) { changes.push_back(change); });
    room.emplace(*holdings);
  }

  Replica& add(const DatasetId& id, uint64_t bytes, bool fast, bool slow, bool home = false) {
    auto& ledger = holdings->ledger;
    Replica& replica = ledger.entry(id, bytes);
    ledger.order.set_fast(replica, fast);
    ledger.order.set_slow(replica, slow);
    ledger.order.set_home(replica, home);
    if (fast) ledger.fast.take(bytes);
    if (slow) ledger.slow.take(bytes);
    ledger.order.touch(replica);
    return replica;
  }

  // Another thread that waits until `id` is idle.
  std::future<Result<bool>> wait_elsewhere(const DatasetId& id, const CancelFlag& cancel) {
    return std::async(std::launch::async, [this, id, &cancel]() -> Result<bool> {
      auto lock = holdings->lock();
      const auto found = holdings->wait_idle(lock, id, cancel);
      if (!found) return tl::unexpected(found.error());
      return *found != nullptr;
    });
  }
  static bool waits(std::future<Result<bool>>& waiter) {
    return waiter.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
  }

  std::optional<Holdings> holdings;
  std::optional<PoolRoom> room;
};

TEST_F(PoolParts, AnEntryIsWaitedForUntilItsTransferEnds) {
  std::optional<Holdings::Busy> here, nowhere;
  {
    auto lock = holdings->lock();
    add({"here", 1}, 10, true, false);
    add({"nowhere", 1}, 10, false, false);
    here.emplace(*holdings, DatasetId{"here", 1});
    nowhere.emplace(*holdings, DatasetId{"nowhere", 1});
  }
  auto for_here = wait_elsewhere({"here", 1}, kNeverCancelled);
  auto for_nowhere = wait_elsewhere({"nowhere", 1}, kNeverCancelled);
  EXPECT_TRUE(waits(for_here) && waits(for_nowhere));
  {
    auto lock = holdings->lock();
    here.reset();
    nowhere.reset();
  }
  EXPECT_TRUE(*for_here.get());
  EXPECT_FALSE(*for_nowhere.get());  // nothing came of it: there is no such entry any more
}

TEST_F(PoolParts, WhoWaitsForAnEntryCanBeCancelled) {
  std::optional<Holdings::Busy> busy;
  {
    auto lock = holdings->lock();
    add({"here", 1}, 10, true, false);
    busy.emplace(*holdings, DatasetId{"here", 1});
  }
  CancelFlag cancel{false};
  auto waiter = wait_elsewhere({"here", 1}, cancel);
  EXPECT_TRUE(waits(waiter));
  cancel = true;
  holdings->wake();
  EXPECT_EQ(waiter.get().error().code, ErrorCode::kConflict);
  auto lock = holdings->lock();
  busy.reset();
}

TEST_F(PoolParts, NothingIsDroppedForWhatWouldNotFitAnyway) {
  auto lock = holdings->lock();
  add({"home", 1}, 60, false, true, true);
  add({"spare", 1}, 40, false, true);
  EXPECT_EQ(room->make_slow(lock, 50).error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(holdings->ledger.find({"spare", 1})->slow());
  EXPECT_EQ(room->totals().slow_drops, 0u);
  ASSERT_TRUE(room->make_slow(lock, 40));
  EXPECT_EQ(holdings->ledger.find({"spare", 1}), nullptr);
  EXPECT_EQ(holdings->ledger.slow.used(), 100u);
  EXPECT_EQ(room->totals().slow_drops, 1u);
}

TEST_F(PoolParts, RoomIsTakenOnlyWhenThereIsEnough) {
  auto lock = holdings->lock();
  add({"pinned", 1}, 60, true, true).pins = 1;
  add({"clean", 1}, 40, true, true);
  EvictionTally tally;
  EXPECT_EQ(room->make_fast(lock, 50, CancelFlag{true}, tally).error().code, ErrorCode::kConflict);
  EXPECT_EQ(tally.bytes, 0u);
  EXPECT_EQ(room->make_fast(lock, 50, kNeverCancelled, tally).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(holdings->ledger.fast.used(), 60u);
  EXPECT_EQ(tally.bytes, 40u);
  EXPECT_EQ(tally.written_bytes, 0u);
  ASSERT_TRUE(room->make_fast(lock, 40, kNeverCancelled, tally));
  EXPECT_EQ(holdings->ledger.fast.used(), 100u);
}

TEST_F(PoolParts, TheNameOfADatasetThatCouldNotBeMadeIsFreeAgain) {
  NewDatasets datasets(*holdings, *room);
  EXPECT_EQ(datasets.create("new", ZeroFill{101}, kNeverCancelled).error().code,
            ErrorCode::kExhausted);
  const auto made = datasets.create("new", ZeroFill{100}, kNeverCancelled);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->home && made->in_slow && !made->in_fast);
  EXPECT_EQ(datasets.create("new", ZeroFill{1}, kNeverCancelled).error().code,
            ErrorCode::kConflict);
}

TEST(PrivateCharge, GivesBackWhatNoReplicaTookOver) {
  PoolLedger ledger(100, 100);
  ledger.fast.take(50);
  ledger.pin_private(50);
  ledger.slow.take(30);
  {
    PrivateCharge charge(ledger, 50);
    charge.add_slow(30);
    charge.set_fast(20);  // it turned out to be smaller
    EXPECT_EQ(ledger.fast.used(), 20u);
    EXPECT_EQ(ledger.pinned_bytes(), 20u);
    const PrivateCharge moved(std::move(charge));
  }
  EXPECT_EQ(ledger.fast.used(), 0u);
  EXPECT_EQ(ledger.slow.used(), 0u);
  EXPECT_EQ(ledger.pinned_bytes(), 0u);
}

TEST(PrivateCharge, WhatAReplicaTookOverStaysUsedButIsPinnedNoMore) {
  PoolLedger ledger(100, 100);
  ledger.fast.take(50);
  ledger.pin_private(50);
  ledger.slow.take(50);
  {
    PrivateCharge charge(ledger, 50);
    charge.add_slow(50);
    charge.hand_over_fast();
    charge.hand_over_slow();
  }
  EXPECT_EQ(ledger.fast.used(), 50u);
  EXPECT_EQ(ledger.slow.used(), 50u);
  EXPECT_EQ(ledger.pinned_bytes(), 0u);
}

}  // namespace
}  // namespace tierpilot
