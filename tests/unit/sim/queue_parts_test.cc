// What the queue knows beside the order: who writes which dataset, and who is kept back.
#include "policies/sim/queue/dataset_writers.h"
#include "policies/sim/queue/kept_back_tasks.h"
#include "policies/sim/view/cluster_view.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr uint32_t kWriter = 0, kOther = 1, kReader = 2;

// Two that write dataset 0, and one that reads it.
WorkloadBuilder one_dataset() {
  WorkloadBuilder work({kMB, kMB});
  work.add(0, 1, {{0, true}, {1, true}});
  work.add(0, 1, {{0, true}});
  work.add(0, 1, {{0, false}});
  return work;
}

std::vector<uint32_t> freed_by(DatasetWriters& writers, uint32_t task) {
  std::vector<uint32_t> freed;
  writers.end(task, [&](uint32_t dataset) { freed.push_back(dataset); });
  return freed;
}

TEST(DatasetWriters, OneAtATime) {
  const auto cluster = plain_cluster(2);
  const auto work = one_dataset();
  ReplicaStore store(cluster, work.workload());
  ASSERT_TRUE(store.place_homes());
  DatasetWriters writers(work.workload(), store);
  EXPECT_EQ(writers.missing(kWriter), kNone);
  writers.begin(kWriter);
  EXPECT_EQ(writers.missing(kOther), 0u);
  EXPECT_EQ(writers.missing(kReader), kNone) << "who reads waits for no writer";
  EXPECT_TRUE(freed_by(writers, kOther).empty()) << "it is not the one that writes";
  EXPECT_EQ(freed_by(writers, kWriter), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(writers.missing(kOther), kNone);
}

TEST(DatasetWriters, WhatIsOnADeadNodeIsMissedButNotLost) {
  const auto cluster = plain_cluster(2);
  const auto work = one_dataset();
  ReplicaStore store(cluster, work.workload());
  ASSERT_TRUE(store.place_homes());
  DatasetWriters writers(work.workload(), store);
  store.node_failed(0);
  EXPECT_EQ(writers.missing(kReader), 0u);
  EXPECT_FALSE(writers.lost(kReader));
  store.node_repaired(0);
  EXPECT_EQ(writers.missing(kReader), kNone);
}

TEST(DatasetWriters, WhatNobodyHasIsLostUnlessItIsBeingWritten) {
  const auto cluster = plain_cluster(2);
  const auto work = one_dataset();
  const ReplicaStore empty(cluster, work.workload());
  DatasetWriters writers(work.workload(), empty);
  EXPECT_TRUE(writers.lost(kReader));
  writers.begin(kWriter);
  EXPECT_EQ(writers.missing(kReader), 0u);
  EXPECT_FALSE(writers.lost(kReader));
}

class KeptBack : public testing::Test {
 protected:
  KeptBack() {
    EXPECT_TRUE(store_.place_homes());
    EXPECT_GT(view_.show(work_.workload().tasks[kWriter]), 0u);
  }
  const NodeState& node(size_t i) const { return view_.view().nodes[i]; }
  auto hold(uint32_t task, size_t full, int64_t now_ns) {
    return kept_back_.hold({1.0, task}, view_.view(), full, now_ns);
  }

  ClusterSpec cluster_ = plain_cluster(2);
  WorkloadBuilder work_ = one_dataset();
  ReplicaStore store_{cluster_, work_.workload()};
  ClusterView view_{cluster_, work_.workload(), store_, true};
  KeptBackTasks kept_back_{view_.nodes(), cluster_.coordinator.backlog_units};
};

TEST_F(KeptBack, TheViewSaysWhoWaitsForANode) {
  EXPECT_TRUE(hold(kWriter, 1, 5 * kMs));
  EXPECT_TRUE(kept_back_.waits(kWriter));
  EXPECT_EQ(node(1).held_units, 1u);
  EXPECT_TRUE(kept_back_.wake(kWriter));
  EXPECT_FALSE(kept_back_.waits(kWriter));
  EXPECT_EQ(node(1).held_units, 0u);
  EXPECT_FALSE(kept_back_.wake(kOther)) << "it was never kept back";
}

TEST_F(KeptBack, ItsTimeCountsFromTheFirst) {
  EXPECT_TRUE(hold(kWriter, 0, 5 * kMs));
  EXPECT_TRUE(kept_back_.wake(kWriter));
  EXPECT_FALSE(hold(kWriter, 1, 9 * kMs)) << "said before";
  EXPECT_FALSE(kept_back_.take_first_asked_ns(kWriter)) << "not placed yet";
  kept_back_.placed(kWriter);
  EXPECT_EQ(kept_back_.size(), 0u);
  EXPECT_EQ(node(1).held_units, 0u);
  EXPECT_EQ(kept_back_.take_first_asked_ns(kWriter), 5 * kMs);
  EXPECT_FALSE(kept_back_.take_first_asked_ns(kWriter)) << "only once";
}

TEST_F(KeptBack, RoomWakesOneAndAFailureAll) {
  for (const uint32_t task : {kWriter, kOther, kReader}) EXPECT_TRUE(hold(task, 0, 0));
  kept_back_.room(0);
  std::vector<uint64_t> woken;
  kept_back_.wake_for_room([&](uint64_t task) { woken.push_back(task); });
  EXPECT_EQ(woken, (std::vector<uint64_t>{kWriter}));
  EXPECT_EQ(node(0).held_units, 2u);
  EXPECT_EQ(kept_back_.wake_all(0), (std::set<uint64_t>{kOther, kReader}));
  EXPECT_EQ(node(0).held_units, 0u);
}

}  // namespace
}  // namespace tierpilot::sim
