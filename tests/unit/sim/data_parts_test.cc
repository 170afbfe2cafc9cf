// What the data plane and the view are made of, by themselves.
#include "policies/sim/data/dataset_holders.h"
#include "policies/sim/data/read_turns.h"
#include "policies/sim/view/candidate_sets.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr uint32_t kSource = 0;

// Three nodes; the first has one reader at a time.
class Turns : public testing::Test {
 protected:
  Turns() {
    for (uint32_t task = 0; task < 4; ++task) {
      requests_.open(task, 1 + task % 2).items.push_back({.dataset = 7, .version = 1});
      ids_.push_back(requests_.of(task));
    }
  }
  static ClusterSpec one_reader() {
    auto cluster = plain_cluster(3);
    cluster.groups[0].readers = 1;
    return cluster;
  }
  std::vector<uint32_t> ready() {
    std::vector<uint32_t> ready;
    requests_.advance_ready([&](uint32_t id) { ready.push_back(id); });
    return ready;
  }

  Requests requests_{4};
  ReadTurns turns_{one_reader(), requests_};
  std::vector<uint32_t> ids_;  // by task
};

TEST_F(Turns, GoFromOneToTheNext) {
  ASSERT_TRUE(turns_.any_left(kSource));
  turns_.take(requests_[ids_[0]], kSource);
  EXPECT_FALSE(turns_.any_left(kSource));
  turns_.wait(ids_[1], kSource);
  turns_.wait(ids_[2], kSource);
  turns_.leave(ids_[1]);
  turns_.pass(requests_[ids_[0]]);
  EXPECT_EQ(ready(), std::vector<uint32_t>{ids_[2]}) << "the other one has left the line";
  EXPECT_TRUE(requests_[ids_[2]].has_turn);
  EXPECT_FALSE(turns_.any_left(kSource));
  turns_.pass(requests_[ids_[2]]);
  EXPECT_TRUE(turns_.any_left(kSource));
}

TEST_F(Turns, EverySecondWhoWaitsGoesOnToANewCopy) {
  const uint32_t copy = 2;
  turns_.take(requests_[ids_[3]], kSource);
  for (const uint32_t task : {0, 2}) turns_.wait(ids_[task], kSource);  // both of node 1
  turns_.send_to_copy(kSource, copy, requests_[ids_[3]].items[0]);
  EXPECT_EQ(ready(), std::vector<uint32_t>{ids_[0]});
  EXPECT_EQ(requests_[ids_[0]].source, copy);
  EXPECT_EQ(requests_[ids_[2]].source, kSource);
  EXPECT_FALSE(turns_.any_left(copy));
}

TEST_F(Turns, AFailedSourceHasThemAllAgain) {
  turns_.take(requests_[ids_[0]], kSource);
  turns_.wait(ids_[1], kSource);
  turns_.source_failed(kSource);
  EXPECT_TRUE(turns_.any_left(kSource));
  EXPECT_TRUE(ready().empty()) << "who waited is told by others";
}

TEST(DatasetHolders, AreThoseOfTheNewestVersion) {
  WorkloadBuilder work({kMB});
  DatasetHolders datasets(work.workload());
  EvictionOrder order;
  Replica old, made;
  old.version = 1;
  old.node = 3;
  old.dataset = made.dataset = 0;
  order.set_slow(old, true);
  EXPECT_TRUE(datasets.lost(0));
  datasets.list(old);
  EXPECT_FALSE(datasets.lost(0));
  const uint64_t before = datasets.availability();
  const auto older = datasets.begin_version(0);
  ASSERT_EQ(older.size(), 1u);
  EXPECT_EQ(older[0].node, 3u);
  EXPECT_EQ(old.holder, kNone);
  datasets.list(old);
  EXPECT_TRUE(datasets.holders(0).empty()) << "it is not the newest any more";
  made.version = datasets.version(0);
  made.node = 4;
  order.set_fast(made, true);
  datasets.list(made);
  EXPECT_EQ(datasets.availability(), before) << "the dataset was held all the time";
  EXPECT_EQ(datasets.sources(0, made.version, 1, 0).all()[0].node, 4u);
  EXPECT_EQ(datasets.sources(0, made.version, 4, 0).count, 0u) << "who reads is no source";
  EXPECT_EQ(datasets.sources(0, 1, 1, 0).count, 0u);
  datasets.unlist(made);
  EXPECT_NE(datasets.availability(), before);
  order.set_slow(old, false);
  order.set_fast(made, false);
}

TEST(CandidateSets, KnownShapesAreNotAskedAboutAgain) {
  CandidateSets sets(4);
  const std::vector<uint32_t> nodes{0, 1, 2, 3};
  int asked = 0;
  const auto odd = [&](uint32_t node, const TaskShape&) { return ++asked, node % 2 == 1; };
  const TaskShape small{.units = 1}, large{.units = 2};
  EXPECT_FALSE(sets.any_selected());
  EXPECT_TRUE(sets.select(small, nodes, odd));
  EXPECT_FALSE(sets.select(small, nodes, odd));
  EXPECT_TRUE(sets.select(large, nodes, odd));
  EXPECT_TRUE(sets.select(small, nodes, odd));
  EXPECT_EQ(asked, 8) << "once for each node and shape";
  EXPECT_EQ(sets.nodes().size(), 2u);
  sets.update(1, [](uint32_t, const TaskShape& shape) { return shape.units == 2; });
  EXPECT_FALSE(sets.nodes().contains(1));
  EXPECT_TRUE(sets.select(large, nodes, odd));
  EXPECT_TRUE(sets.nodes().contains(1));
  sets.clear();
  EXPECT_TRUE(sets.select(small, nodes, odd));
  EXPECT_EQ(asked, 12);
}

TEST(CandidateSets, TheShapeThatWasSelectedLongestAgoIsForgotten) {
  CandidateSets sets(1);
  int asked = 0;
  const auto select = [&](uint32_t units) {
    sets.select({.units = units}, {0}, [&](uint32_t, const TaskShape&) { return ++asked, true; });
  };
  for (uint32_t units = 1; units <= 8; ++units) select(units);
  select(1);
  EXPECT_EQ(asked, 8);
  select(9);  // in the place of 2
  select(1);
  select(3);
  EXPECT_EQ(asked, 9);
  select(2);
  EXPECT_EQ(asked, 10);
}

}  // namespace
}  // namespace tierpilot::sim
