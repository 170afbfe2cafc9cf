// What was learned of pairs is there again when the store is opened, and does not grow without end.
#include <gtest/gtest.h>

#include <map>

#include "coordinator/store/records.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using records::MeasuredPair;
using records::PairKind;
using sharing::PairEffects;

class PairRecords : public CoreTest {
 protected:
  void put(PairKind kind, const std::vector<MeasuredPair>& pairs, int64_t now_ms) {
    store_->write([=](Db& db) { return records::put_pairs(db, kind, pairs, now_ms); }, nullptr);
    flush();
  }
  std::vector<MeasuredPair> all(PairKind kind) { return *records::pairs(store_->reader(), kind); }
};

MeasuredPair pair(const std::string& first, const std::string& second, double ln) {
  return {first, second, {ln, 250.5, 3}};
}

TEST_F(PairRecords, AreReadAsTheyWereWrittenTheOldestFirst) {
  put(PairKind::kOnGpus, {pair("b", "a", -0.25)}, 20);
  put(PairKind::kOnGpus, {pair("a", "b", -0.5), pair("", "b'\"\n", 0)}, 10);
  const auto pairs = all(PairKind::kOnGpus);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[2].first, "b");
  EXPECT_EQ(pairs[2].second, "a");
  EXPECT_EQ(pairs[2].measured, (sharing::PairMeasured{-0.25, 250.5, 3}));
  EXPECT_TRUE(all(PairKind::kOnCores).empty());
}

TEST_F(PairRecords, WhatWasThoughtOfAPairIsKeptAndNothingWhereNobodySaid) {
  auto thought = pair("a", "b", -0.5);
  thought.measured.thought = -0.25;
  put(PairKind::kOnGpus, {thought, pair("a", "c", -0.5)}, 10);
  store_->write(
      [](Db& db) {
        return db.execute(
            "INSERT INTO pair_effects(kind, first, second, measured_ms, body) VALUES("
            "'on_gpus', 'a', 'old', 20, '{\"ln\":-0.125,\"times\":3,\"weight\":250.5}')");
      },
      nullptr);
  flush();
  const auto pairs = all(PairKind::kOnGpus);
  ASSERT_EQ(pairs.size(), 3u);
  std::map<std::string, sharing::PairMeasured> measured;
  for (const auto& each : pairs) measured[each.second] = each.measured;
  EXPECT_EQ(measured["b"].thought, -0.25);
  EXPECT_EQ(measured["c"].thought, 0);
  EXPECT_EQ(measured["old"], (sharing::PairMeasured{-0.125, 250.5, 3, 0}));
}

TEST_F(PairRecords, ANewerOneOfAPairTakesItsPlace) {
  put(PairKind::kRuns, {pair("a", "b", -0.5)}, 10);
  put(PairKind::kRuns, {pair("a", "b", -0.1)}, 20);
  const auto pairs = all(PairKind::kRuns);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].measured.ln, -0.1);
}

// Of each kind as many as are remembered.
TEST_F(PairRecords, TheOldestMakeRoom) {
  put(PairKind::kOnGpus, {pair("first", "gpu", -0.1)}, 1);
  put(PairKind::kOnCores, {pair("first", "x", -0.1)}, 1);
  std::vector<MeasuredPair> many;
  for (size_t i = 0; i + 1 < PairEffects::kMostPairs; ++i)
    many.push_back(pair("job" + std::to_string(i), "x", -0.1));
  put(PairKind::kOnCores, many, 2);
  EXPECT_EQ(all(PairKind::kOnCores).size(), PairEffects::kMostPairs);
  put(PairKind::kOnCores, {pair("last", "x", -0.1)}, 3);
  const auto pairs = all(PairKind::kOnCores);
  EXPECT_EQ(pairs.size(), PairEffects::kMostPairs);
  EXPECT_NE(pairs.front().first, "first");
  EXPECT_EQ(pairs.back().first, "last");
  EXPECT_EQ(all(PairKind::kOnGpus).size(), 1u);
}

TEST_F(PairRecords, WhatIsDamagedIsLeftOut) {
  put(PairKind::kRuns, {pair("a", "b", -0.5), pair("a", "c", -0.25), pair("a", "d", -0.1)}, 10);
  store_->write(
      [](Db& db) {
        return db.execute(
            "UPDATE pair_effects SET body = '{\"ln\":1' WHERE second = 'b';"
            "UPDATE pair_effects SET body = '{\"ln\":1,\"weight\":1,\"times\":-1}' "
            "WHERE second = 'd'");
      },
      nullptr);
  flush();
  const auto pairs = all(PairKind::kRuns);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].second, "c");
}

}  // namespace
}  // namespace tierpilot::testing
