#include "policies/quality/even_ranks.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace tierpilot::quality {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

JobState job(uint64_t id, double ranks_here, double most, double least = 0) {
  JobState state;
  state.id = id;
  state.ranks_here = ranks_here;
  state.min_cores = least;
  state.max_cores = most;
  return state;
}

TEST(EvenRanks, NoRankHasMoreThanTheOneWithTheLeast) {
  std::vector<NodeShares> nodes{{{job(1, 2, 8), job(2, 1, 8)}, {6, 2}}, {{job(1, 1, 4)}, {1}}};
  even_out(nodes);
  EXPECT_THAT(nodes[0].given, ElementsAre(DoubleEq(2), DoubleEq(6)));
  EXPECT_THAT(nodes[1].given, ElementsAre(DoubleEq(1)));
}

TEST(EvenRanks, WhatNobodyCanUseStaysFree) {
  std::vector<NodeShares> nodes{{{job(1, 1, 8), job(2, 1, 3)}, {6, 2}}, {{job(1, 1, 8)}, {1}}};
  even_out(nodes);
  EXPECT_THAT(nodes[0].given, ElementsAre(DoubleEq(1), DoubleEq(3)));
}

TEST(EvenRanks, ARankKeepsItsLeastWhereNodesDiffer) {
  std::vector<NodeShares> nodes{{{job(1, 1, 8, 2)}, {4}}, {{job(1, 1, 8, 1)}, {1}}};
  even_out(nodes);
  EXPECT_THAT(nodes[0].given, ElementsAre(DoubleEq(2)));
}

TEST(EvenRanks, AGangOnOneNodeIsLeftAlone) {
  std::vector<NodeShares> nodes{{{job(1, 3, 8), job(2, 1, 8)}, {6, 2}}};
  even_out(nodes);
  EXPECT_THAT(nodes[0].given, ElementsAre(DoubleEq(6), DoubleEq(2)));
}

TEST(EvenRanks, NothingIsGivenTwiceAndNobodyHasMoreThanTheMost) {
  std::mt19937 random(7);
  const auto drawn = [&](double from, double to) {
    return std::uniform_real_distribution<>(from, to)(random);
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<NodeShares> nodes(1 + random() % 5);
    std::vector<double> before;
    for (auto& node : nodes) {
      for (uint64_t id = 1; id <= 6; ++id) {
        if (random() % 2) continue;
        const double ranks = static_cast<double>(1 + random() % 4), most = drawn(0.5, 8) * ranks;
        node.jobs.push_back(job(id, ranks, most, drawn(0, 0.4) * ranks));
        node.given.push_back(drawn(node.jobs.back().min_cores, most));
      }
      before.push_back(std::accumulate(node.given.begin(), node.given.end(), 0.0));
    }
    even_out(nodes);
    for (size_t n = 0; n < nodes.size(); ++n) {
      const auto& [jobs, given] = nodes[n];
      EXPECT_LE(std::accumulate(given.begin(), given.end(), 0.0), before[n] + 1e-9);
      for (size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_LE(given[i], jobs[i].max_cores + 1e-9);
        EXPECT_GE(given[i], jobs[i].min_cores - 1e-9);
      }
    }
  }
}

TEST(EvenRanks, APaceIsThatOfOneRank) {
  Throughput throughput;
  JobState one = job(1, 1, 4), four = job(2, 4, 16);
  one.one_core_s = four.one_core_s = 0.5;
  one.throughput = four.throughput = &throughput;
  EXPECT_DOUBLE_EQ(iterations_in(one, 10, 1), 20);
  EXPECT_DOUBLE_EQ(iterations_in(four, 10, 4), 20);
  EXPECT_DOUBLE_EQ(iterations_in(four, 10, 8), iterations_in(one, 10, 2));
}

}  // namespace
}  // namespace tierpilot::quality
