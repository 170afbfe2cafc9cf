// The simulator's parts by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/eviction_order.h"
#include "policies/sim/comparison.h"
#include "policies/sim/data/flows.h"
#include "policies/sim/data/replica_table.h"
#include "policies/sim/queue/blocked_head.h"
#include "policies/sim/queue/queue_places.h"
#include "policies/sim/view/gpus.h"

namespace tierpilot::sim {
namespace {

TEST(EventQueue, EqualTimesInTheOrderOfAsking) {
  EventQueue events;
  events.push(20, EventKind::kRunEnd, 1, 0);
  events.push(10, EventKind::kRunEnd, 2, 0);
  events.push(10, EventKind::kRunEnd, 3, 0);
  EXPECT_EQ(events.pop().subject, 2u);
  EXPECT_EQ(events.pop().subject, 3u);
  EXPECT_EQ(events.next_ns(), 20);
}

TEST(EventQueue, LanesAndFlowsAreInTheOneOrder) {
  using enum EventKind;
  EventQueue events;
  events.push(30, kRunEnd, 1, 0);
  events.set_flow(2, events.due(50), 0);
  events.set_flow(3, events.due(10), 0);
  events.push(EventQueue::Lane::kDispatch, 20, kReceived, 4, 0);
  events.push(EventQueue::Lane::kDispatch, 30, kReceived, 5, 0);
  events.push(EventQueue::Lane::kReport, 30, kReported, 6, 0);
  events.set_flow(2, events.due(30), 0);  // asked for last of those at 30
  events.set_flow(7, events.due(25), 0);
  events.forget_flow(7);
  events.forget_flow(7);
  for (const uint32_t subject : {3, 4, 1, 5, 6, 2}) EXPECT_EQ(events.pop().subject, subject);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(events.next_ns(), INT64_MAX);
}

// Against a list that is looked through each time.
TEST(EventQueue, FlowsMayMoveAtAnyTime) {
  std::mt19937_64 random(5);
  EventQueue events;
  std::map<uint32_t, std::pair<int64_t, int>> expected;  // time and order, by flow
  for (int step = 0; step < 20'000; ++step) {
    const auto flow = static_cast<uint32_t>(random() % 100);
    const auto at_ns = static_cast<int64_t>(random() % 1000);
    const uint64_t what = random() % 8;
    if (what < 4) {
      events.set_flow(flow, events.due(at_ns), 0);
      expected[flow] = {at_ns, step};
    } else if (what < 5) {
      events.forget_flow(flow);
      expected.erase(flow);
    } else if (!expected.empty()) {
      const auto first =
          std::min_element(expected.begin(), expected.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      ASSERT_EQ(events.next_ns(), first->second.first);
      ASSERT_EQ(events.pop().subject, first->first);
      expected.erase(first);
    }
    ASSERT_EQ(events.empty(), expected.empty());
  }
}

TEST(EventQueue, TimeDoesNotOverflow) {
  EXPECT_EQ(after_s(5, 1e300), INT64_MAX);
  EXPECT_EQ(after_s(5, 0), 5);
}

// Against a map; few keys, so that they collide and come back.
TEST(ReplicaTable, AgreesWithAMap) {
  std::mt19937_64 random(3);
  std::vector<int> replicas(3000);
  ReplicaTable<int> table;
  std::map<std::pair<uint32_t, uint32_t>, int*> expected;
  for (int step = 0; step < 50'000; ++step) {
    const auto node = static_cast<uint32_t>(random() % 60);
    const auto dataset = static_cast<uint32_t>(random() % 50);
    const auto known = expected.find({node, dataset});
    ASSERT_EQ(table.find(node, dataset), known == expected.end() ? nullptr : known->second);
    if (known != expected.end() && random() % 2 == 0) {
      table.erase(node, dataset);
      expected.erase(known);
    } else {
      int& replica = replicas[random() % replicas.size()];
      table.set(node, dataset, replica);
      expected[{node, dataset}] = &replica;
    }
  }
}

// Puts the task there.
void queue(TaskQueue& queue, QueuePlaces& places, uint32_t task, double place_s) {
  places.set(task, place_s);
  queue.insert(places.of(task));
}

std::vector<uint32_t> order_of(TaskQueue queue) {
  std::vector<uint32_t> order;
  while (!queue.empty()) order.push_back(static_cast<uint32_t>(queue.take_first().second));
  return order;
}

TEST(TaskQueue, TasksOfOnePlaceTakeTheirOldOne) {
  QueuePlaces places(10);
  TaskQueue tasks;
  for (const uint32_t task : {1, 3, 5}) queue(tasks, places, task, 0);
  EXPECT_EQ(tasks.take_first(), QueuePlace(0, 1));
  queue(tasks, places, 4, 0);
  queue(tasks, places, 0, 0);
  queue(tasks, places, 1, 0);
  EXPECT_EQ(tasks.size(), 5u);
  EXPECT_EQ(order_of(tasks), (std::vector<uint32_t>{0, 1, 3, 4, 5}));
}

TEST(TaskQueue, PlacesComeBeforeNumbers) {
  QueuePlaces places(10);
  TaskQueue tasks;
  queue(tasks, places, 1, 2.5);
  queue(tasks, places, 2, -1);
  queue(tasks, places, 3, 2.5);
  queue(tasks, places, 4, 0.5);
  EXPECT_EQ(order_of(tasks), (std::vector<uint32_t>{2, 4, 1, 3}));
  EXPECT_EQ(tasks.take_first(), QueuePlace(-1, 2));
  queue(tasks, places, 2, 9);
  EXPECT_EQ(order_of(tasks), (std::vector<uint32_t>{4, 1, 3, 2}));
  EXPECT_EQ(places.of(2), QueuePlace(9, 2));
}

TEST(BlockedHead, WhatIsCutComesBackInItsOrder) {
  QueuePlaces places(10);
  TaskQueue tasks;
  BlockedHead head;
  for (const uint32_t task : {3, 2, 1, 0}) {
    places.set(task, 10 - task);
    head.append(places.of(task));
  }
  places.set(4, 8.5);
  EXPECT_TRUE(head.insert(places.of(4)));
  places.set(5, 11);
  EXPECT_FALSE(head.insert(places.of(5)));
  head.cut(2, tasks);
  EXPECT_EQ(head.size(), 2u);
  EXPECT_EQ(order_of(tasks), (std::vector<uint32_t>{4, 1, 0}));
}

TEST(Gpus, SharesFillTheFullestThatHasRoom) {
  Gpus gpus(3);
  const auto first = gpus.take(600);
  EXPECT_EQ(gpus.take(300), first);
  EXPECT_NE(gpus.take(300), first);
  EXPECT_TRUE(gpus.fits(1000));
  EXPECT_FALSE(gpus.fits(2000));
  gpus.give(first, 600);
  EXPECT_EQ(gpus.free_milli(), 3000u - 600);
}

TEST(Gpus, FailedOnesHaveNoRoom) {
  Gpus gpus(2);
  gpus.set_failed(0, true);
  EXPECT_FALSE(gpus.fits(2000));
  EXPECT_EQ(gpus.take(1000), Gpus::Mask{2});
  EXPECT_FALSE(gpus.fits(1));
  gpus.set_failed(0, false);
  EXPECT_TRUE(gpus.fits(1000));
}

// Against a simulation in small steps.
TEST(Flows, RatesFollowWhatSharesTheLinks) {
  std::mt19937_64 random(7);
  EventQueue events;
  Flows flows(events);
  const double capacity[] = {1e6, 2e6, 3e6};
  uint32_t links[3];
  for (int i = 0; i < 3; ++i) links[i] = flows.add_link(capacity[i]);
  struct Expected {
    double left;
    uint32_t a, b;
  };
  std::vector<Expected> expected;
  for (uint32_t i = 0; i < 20; ++i) {
    const auto a = static_cast<uint32_t>(random() % 3);
    const uint32_t b = (a + 1 + static_cast<uint32_t>(random() % 2)) % 3;
    expected.push_back({1e5 + static_cast<double>(random() % 100) * 1e4, a, b});
    flows.start(0, expected.back().left, {links[a], links[b]}, i);
  }
  double now_s = 0;
  for (size_t ended = 0; ended < expected.size();) {
    ASSERT_FALSE(events.empty());
    const Event event = events.pop();
    const auto owner = flows.take_ended(event);
    if (!owner) continue;
    // Since the last end nothing has changed, so rates were constant.
    int members[3] = {};
    for (const auto& flow : expected)
      if (flow.left > 0) ++members[flow.a], ++members[flow.b];
    const double step_s = static_cast<double>(event.at_ns) * 1e-9 - now_s;
    for (auto& flow : expected)
      if (flow.left > 0)
        flow.left =
            std::max(1e-300, flow.left - step_s * std::min(capacity[flow.a] / members[flow.a],
                                                           capacity[flow.b] / members[flow.b]));
    EXPECT_NEAR(expected[*owner].left, 0, 1) << "a byte of rounding";
    expected[*owner].left = 0;
    now_s += step_s;
    ++ended;
  }
  EXPECT_TRUE(events.empty() || !flows.take_ended(events.pop()));
}

TEST(Flows, ACancelledFlowGivesItsShareBack) {
  EventQueue events;
  Flows flows(events);
  const auto link = flows.add_link(1e9);
  flows.start(0, 1e9, {link}, 1);
  const auto other = flows.start(0, 1e9, {link}, 2);
  flows.cancel(1'000'000'000, other);
  std::optional<uint32_t> ended;
  Event event{};
  while (!ended) ended = flows.take_ended(event = events.pop());
  EXPECT_EQ(*ended, 1u);
  EXPECT_NEAR(static_cast<double>(event.at_ns), 1.5e9, 10);
}

// The order must be that of plain sorting by last use.
TEST(EvictionOrder, AgreesWithSorting) {
  struct Model {
    TierReplica replica;
    int used = 0;
  };
  std::mt19937_64 random(11);
  EvictionOrder order;
  std::vector<std::unique_ptr<Model>> all;
  for (int i = 0; i < 40; ++i) all.push_back(std::make_unique<Model>());
  for (int step = 1; step < 5000; ++step) {
    Model& one = *all[random() % all.size()];
    switch (random() % 6) {
      case 0:
        order.touch(one.replica);
        one.used = step;
        break;
      case 1:
        order.set_fast(one.replica, random() % 2 == 0);
        break;
      case 2:
        order.set_slow(one.replica, random() % 2 == 0);
        break;
      case 3:
        order.set_home(one.replica, random() % 4 == 0);
        break;
      case 4:
        one.replica.pins = static_cast<int>(random() % 2);
        break;
      case 5:
        one.replica.busy = random() % 8 == 0;
        break;
    }
    const auto oldest = [&](auto may_leave) {
      int used = INT32_MAX;
      for (const auto& model : all)
        if ((model->replica.*may_leave)()) used = std::min(used, model->used);
      return used;
    };
    const auto used = [&](const TierReplica* victim) {
      for (const auto& model : all)
        if (&model->replica == victim) return model->used;
      return INT32_MAX;
    };
    ASSERT_EQ(used(order.fast_victim()), oldest(&TierReplica::may_leave_fast)) << step;
    ASSERT_EQ(used(order.slow_victim()), oldest(&TierReplica::may_leave_slow)) << step;
  }
}

TEST(Estimate, IsStudents) {
  const Estimate one = estimate({3});
  EXPECT_EQ(one.mean, 3);
  EXPECT_FALSE(one.half_width);
  const Estimate three = estimate({1, 2, 3});
  EXPECT_EQ(three.mean, 2);
  EXPECT_NEAR(*three.half_width, 4.303 / std::sqrt(3), 1e-3) << "t(2) at 97.5 % is 4.303";
}

}  // namespace
}  // namespace tierpilot::sim
