// What was learned of pairs is there again when the store is opened, and does not grow without end.
#include <gtest/gtest.h>

#include "coordinator/store/records.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using sharing::LearnedPair;
using sharing::PairEffects;
using sharing::UnitKind;

class SlowDownRecords : public CoreTest {
 protected:
  void put(const std::vector<LearnedPair>& pairs, int64_t now_ms) {
    store_->write([=](Db& db) { return records::put_slow_downs(db, pairs, now_ms); }, nullptr);
    flush();
  }
  std::vector<LearnedPair> all() { return *records::slow_downs(store_->reader()); }
};

LearnedPair pair(const std::string& victim, const std::string& neighbour, double ln,
                 UnitKind on = UnitKind::kCores) {
  return {on, victim, neighbour, {ln, 250.5, 3}};
}

TEST_F(SlowDownRecords, AreReadAsTheyWereWrittenTheOldestFirst) {
  put({pair("b", "a", -0.25, UnitKind::kGpu)}, 20);
  put({pair("a", "b", -0.5), pair("", "b'\"\n", 0)}, 10);
  const auto pairs = all();
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[2].on, UnitKind::kGpu);
  EXPECT_EQ(pairs[2].victim, "b");
  EXPECT_EQ(pairs[2].neighbour, "a");
  EXPECT_EQ(pairs[2].measured, (sharing::PairMeasured{-0.25, 250.5, 3}));
}

TEST_F(SlowDownRecords, ANewerOneOfAPairTakesItsPlace) {
  put({pair("a", "b", -0.5)}, 10);
  put({pair("a", "b", -0.1), pair("a", "b", -0.2, UnitKind::kGpu)}, 20);
  const auto pairs = all();
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].measured.ln + pairs[1].measured.ln, -0.1 + -0.2);
}

// Of each kind as many as are remembered.
TEST_F(SlowDownRecords, TheOldestMakeRoom) {
  put({pair("first", "gpu", -0.1, UnitKind::kGpu)}, 1);
  put({pair("first", "x", -0.1)}, 1);
  std::vector<LearnedPair> many;
  for (size_t i = 0; i + 1 < PairEffects::kMostPairs; ++i)
    many.push_back(pair("job" + std::to_string(i), "x", -0.1));
  put(many, 2);
  EXPECT_EQ(all().size(), PairEffects::kMostPairs + 1);
  put({pair("last", "x", -0.1)}, 3);
  const auto pairs = all();
  EXPECT_EQ(pairs.size(), PairEffects::kMostPairs + 1);
  const auto has = [&](const std::string& victim, UnitKind on) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const LearnedPair& each) {
      return each.victim == victim && each.on == on;
    });
  };
  EXPECT_FALSE(has("first", UnitKind::kCores));
  EXPECT_TRUE(has("first", UnitKind::kGpu));
  EXPECT_TRUE(has("last", UnitKind::kCores));
}

TEST_F(SlowDownRecords, WhatIsDamagedIsNamed) {
  put({pair("a", "b", -0.5)}, 10);
  store_->write([](Db& db) { return db.execute("UPDATE slow_downs SET body = '{\"ln\":1'"); },
                nullptr);
  flush();
  const auto read = records::slow_downs(store_->reader());
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("slow-down of a pair"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::testing
