// What may leave is told in the order in which it became so, whatever left the order meanwhile.
#include "policies/swap/machine/evictables.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

std::vector<StorageId> order(const Evictables& evictables) {
  std::vector<StorageId> found;
  for (auto at = evictables.first(); at != kNone; at = evictables.next(at)) found.push_back(at);
  return found;
}

TEST(Evictables, KeepTheOrderInWhichTheyBecameSo) {
  Evictables evictables(4);
  EXPECT_EQ(evictables.first(), kNone);
  for (const StorageId storage : {2, 0, 3, 1}) evictables.add(storage);
  evictables.add(2);  // is there already: keeps its place
  EXPECT_EQ(order(evictables), (std::vector<StorageId>{2, 0, 3, 1}));
}

TEST(Evictables, ComeLastWhenTheyComeAgain) {
  Evictables evictables(3);
  for (const StorageId storage : {0, 1, 2}) evictables.add(storage);
  evictables.remove(0);
  evictables.remove(0);
  EXPECT_FALSE(evictables.contains(0));
  evictables.add(0);
  EXPECT_EQ(order(evictables), (std::vector<StorageId>{1, 2, 0}));
}

TEST(Evictables, AreGoneFromBeginMiddleAndEnd) {
  Evictables evictables(5);
  for (const StorageId storage : {0, 1, 2, 3, 4}) evictables.add(storage);
  for (const StorageId storage : {0, 2, 4}) evictables.remove(storage);
  EXPECT_EQ(order(evictables), (std::vector<StorageId>{1, 3}));
  for (const StorageId storage : {1, 3}) evictables.remove(storage);
  EXPECT_EQ(evictables.first(), kNone);
}

}  // namespace
}  // namespace tierpilot::swap
