#include "daemon/memory/pool/ledger.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

DatasetId id(const std::string& name, uint64_t version = 1) {
  return {name, version};
}

Replica& add(PoolLedger& ledger, const DatasetId& id, uint64_t bytes, bool fast, bool slow) {
  Replica& replica = ledger.entry(id, bytes);
  ledger.order.set_fast(replica, fast);
  ledger.order.set_slow(replica, slow);
  if (fast) ledger.fast.take(bytes);
  if (slow) ledger.slow.take(bytes);
  ledger.order.touch(replica);
  return replica;
}

TEST(TierAccount, FitsWithoutOverflow) {
  TierAccount account(100);
  account.take(60);
  EXPECT_TRUE(account.fits(40));
  EXPECT_FALSE(account.fits(41));
  EXPECT_FALSE(account.fits(UINT64_MAX));
  account.take(60);
  EXPECT_FALSE(account.fits(0));
}

TEST(PoolLedger, VictimIsLeastRecentlyUsedUnpinnedAndIdle) {
  PoolLedger ledger(100, 100);
  for (const auto* name : {"a", "b", "c", "d"}) add(ledger, id(name), 10, true, false);
  ledger.pin(id("a"), 10);
  ledger.find(id("b"))->busy = true;
  EXPECT_EQ(ledger.fast_victim({}), id("c"));
  EXPECT_EQ(ledger.fast_victim({id("c")}), id("d"));
  ledger.unpin(id("a"));  // used last now
  ledger.find(id("b"))->busy = false;
  EXPECT_EQ(ledger.fast_victim({}), id("b"));
  EXPECT_EQ(ledger.fast_victim({id("b"), id("c"), id("d")}), id("a"));
}

TEST(PoolLedger, PinnedBytesCountADatasetOnce) {
  PoolLedger ledger(100, 100);
  ledger.pin(id("a"), 60);
  ledger.pin(id("a"), 60);
  EXPECT_EQ(ledger.pinned_bytes(), 60u);
  EXPECT_TRUE(ledger.can_pin(40));
  EXPECT_FALSE(ledger.can_pin(41));
  ledger.unpin(id("a"));
  EXPECT_EQ(ledger.pinned_bytes(), 60u);
  ledger.unpin(id("a"));
  EXPECT_EQ(ledger.pinned_bytes(), 0u);
  EXPECT_EQ(ledger.find(id("a")), nullptr) << "an entry without replica ends with its last pin";
}

TEST(PoolLedger, SlowVictimsAreNeitherHomeNorNeededNorBusy) {
  PoolLedger ledger(100, 100);
  ledger.order.set_home(add(ledger, id("home"), 1, false, true), true);
  add(ledger, id("busy"), 2, false, true).busy = true;
  add(ledger, id("promised"), 4, false, true);
  ledger.pin(id("promised"), 4);
  add(ledger, id("old"), 8, false, true);
  add(ledger, id("new"), 16, true, true);
  EXPECT_EQ(ledger.slow_victim(), id("old"));
  EXPECT_EQ(ledger.order.slow_droppable_bytes(), 24u);
}

TEST(PoolLedger, DoomTakesOlderVersionsOfThatNameOnly) {
  PoolLedger ledger(100, 100);
  for (const auto& one : {id("a", 1), id("a", 2), id("a", 3), id("ab", 1), id("b", 1)})
    add(ledger, one, 1, false, true);
  ledger.pin(id("a", 1), 1);
  ledger.doom("a", 3);
  EXPECT_EQ(ledger.removable(), id("a", 2));
  ledger.find(id("a", 2))->doomed = false;
  EXPECT_EQ(ledger.removable(), std::nullopt) << "a pinned version waits";
  ledger.unpin(id("a", 1));
  EXPECT_EQ(ledger.removable(), id("a", 1));
}

TEST(PoolLedger, RoomIsComingFromTransfersOnly) {
  PoolLedger ledger(100, 100);
  Replica& replica = add(ledger, id("a"), 10, true, false);
  EXPECT_FALSE(ledger.fast_room_coming());
  replica.busy = true;
  EXPECT_TRUE(ledger.fast_room_coming());
  ledger.pin(id("a"), 10);
  EXPECT_FALSE(ledger.fast_room_coming()) << "pinned while it was to be evicted";
  ledger.order.set_fast(replica, false);
  replica.leaving = true;
  EXPECT_TRUE(ledger.fast_room_coming());
}

// It is promoted ahead of its use, and can be evicted as soon as it is there.
TEST(PoolLedger, RoomIsComingWhereNobodyWaitsForWhatArrives) {
  PoolLedger ledger(100, 100);
  Replica& replica = add(ledger, id("a"), 60, false, true);
  replica.busy = true;
  EXPECT_FALSE(ledger.fast_room_coming());
  replica.arriving = true;
  EXPECT_TRUE(ledger.fast_room_coming());
  ledger.pin(id("a"), 60);
  EXPECT_FALSE(ledger.fast_room_coming());
}

}  // namespace
}  // namespace tierpilot
