// Which nodes of a large cluster a decision looks at.
#include "policies/scheduling/shortlist.h"

#include <gmock/gmock.h>

#include <set>

namespace tierpilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

struct TestNode {
  uint64_t fast_bytes = 0, slow_bytes = 0;
  double load = 0;
  int speed = 0;
  bool has_room = true;
  bool is_large_enough = true;
};

struct TestCluster {
  using Node = uint32_t;
  std::vector<TestNode> nodes;
  std::vector<int> speeds{1, 0};
  std::set<uint32_t> list;

  template <class Visit>
  void for_each_holder(Visit visit) {
    for (uint32_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].fast_bytes + nodes[i].slow_bytes > 0)
        visit(i, nodes[i].fast_bytes, nodes[i].slow_bytes);
  }
  bool can_take(Node i) { return nodes[i].has_room && could_take(i); }
  bool could_take(Node i) { return nodes[i].is_large_enough; }
  double load(Node i) { return nodes[i].load; }
  uint32_t slot(Node i) { return i; }
  size_t chosen() { return list.size(); }
  void choose(Node i) { list.insert(i); }
  void choose_full(Node i) { list.insert(i); }
  std::vector<int>& classes() { return speeds; }
  void choose_least_loaded(int speed, size_t most) {
    std::set<std::pair<double, uint32_t>> alike;
    for (uint32_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].speed == speed && can_take(i)) alike.insert({load(i), i});
    for (const auto& [load, i] : alike)
      if (list.size() < most) list.insert(i);
  }
};

std::set<uint32_t> list_of(std::vector<TestNode> nodes, size_t considered, bool with_full = false) {
  TestCluster cluster{.nodes = std::move(nodes)};
  std::vector<DataHolder<uint32_t>> scratch;
  make_shortlist(cluster, considered, with_full, scratch);
  return cluster.list;
}

TEST(Shortlist, HalfOfItIsForDataAndSlowDataCountsHalf) {
  std::vector<TestNode> nodes(20);
  for (uint32_t i = 10; i < 20; ++i) nodes[i] = {.fast_bytes = 10, .load = 3};
  nodes[17] = {.slow_bytes = 30, .load = 5};
  nodes[18] = {.slow_bytes = 10, .load = 5};
  EXPECT_THAT(list_of(nodes, 4), ElementsAre(0, 1, 10, 17));
}

TEST(Shortlist, OfEqualHoldersTheLessLoadedAndThenTheLowerSlotIsTaken) {
  std::vector<TestNode> nodes(20, {.load = 9});
  for (const uint32_t i : {5, 7, 9, 11}) nodes[i] = {.fast_bytes = 10, .load = 9.5};
  nodes[11].load = 9.2;
  EXPECT_THAT(list_of(nodes, 4), ElementsAre(0, 1, 5, 11));
}

TEST(Shortlist, ClassesOfSpeedShareThePlacesAndLeaveThemToOthers) {
  std::vector<TestNode> nodes(20);
  for (uint32_t i = 10; i < 20; ++i) nodes[i] = {.load = 1, .speed = 1};
  EXPECT_THAT(list_of(nodes, 6), ElementsAre(0, 1, 2, 10, 11, 12));
  for (uint32_t i = 11; i < 20; ++i) nodes[i].has_room = false;
  EXPECT_THAT(list_of(nodes, 6), ElementsAre(0, 1, 2, 3, 4, 10));
  for (uint32_t i = 11; i < 20; ++i) nodes[i].has_room = true;
  for (uint32_t i = 1; i < 10; ++i) nodes[i].has_room = false;
  EXPECT_THAT(list_of(nodes, 6), ElementsAre(0, 10, 11, 12, 13, 14));
}

TEST(Shortlist, FullNodesAreShownBesideTheOthersForWhatTheyHaveInFastMemory) {
  std::vector<TestNode> nodes(30);
  for (uint32_t i = 10; i < 20; ++i) nodes[i] = {.fast_bytes = i, .has_room = false};
  nodes[20] = {.slow_bytes = 1000, .has_room = false};
  nodes[21] = {.fast_bytes = 1000, .has_room = false, .is_large_enough = false};
  EXPECT_THAT(list_of(nodes, 4), ElementsAre(0, 1, 2, 3));
  const auto with_full = list_of(nodes, 4, true);
  EXPECT_THAT(with_full, SizeIs(4 + kMostFullShown));
  EXPECT_THAT(with_full, IsSupersetOf({0, 1, 2, 3, 12, 19}));
  EXPECT_THAT(with_full, Not(Contains(20)));
  EXPECT_THAT(with_full, Not(Contains(21)));
}

}  // namespace
}  // namespace tierpilot
