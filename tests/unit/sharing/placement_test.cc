#include "policies/sharing/placement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "policies/sharing/chosen_scorer.h"
#include "policies/sim/sharing/pods.h"

namespace tierpilot::sharing {
namespace {

std::vector<Request> requests_of(const PodTrace& trace) {
  std::vector<Request> requests;
  for (const auto& pod : trace.pods) requests.push_back(pod.request);
  return requests;
}

Node node_with(std::vector<uint32_t> free) {
  Node node{.cpu_milli = 64'000, .memory_bytes = uint64_t{1} << 40};
  for (const auto milli : free) node.units.push_back({milli, 0});
  return node;
}

std::optional<Placement> placed(std::string_view policy, std::vector<Node> nodes,
                                const Request& request) {
  const auto scorer = make_scorer(policy, {{request}, nodes}).value();
  return Placer(*scorer).choose(Cluster(std::move(nodes)), request);
}

const Request kQuarter{.cpu_milli = 1000, .units = 1, .share = {.milli = 250}};

TEST(SharingPlacement, RivalsDoWhatTheirNamesSay) {
  const std::vector<Node> nodes{node_with({1000, 1000}), node_with({600, 1000}), node_with({300})};
  EXPECT_EQ(placed("first-fit", nodes, kQuarter), (Placement{0, {0}}));
  EXPECT_EQ(placed("best-fit", nodes, kQuarter), (Placement{2, {0}}));
  EXPECT_EQ(placed("packing", nodes, kQuarter), (Placement{2, {0}}));
  EXPECT_EQ(placed("most-free", nodes, kQuarter), (Placement{0, {0}}));
}

TEST(SharingPlacement, WholeUnitsAreGivenWhole) {
  const auto scorer = make_scorer("whole", {}).value();
  EXPECT_EQ(scorer->given(kQuarter).share.milli, kWholeUnit);
}

TEST(SharingPlacement, APartOfAClusterHasAllItsKinds) {
  std::vector<Node> nodes;
  for (size_t i = 0; i < 800; ++i) nodes.push_back(node_with({1000}));
  const auto with_models = [&](auto model) {
    for (size_t i = 0; i < nodes.size(); ++i) nodes[i].model = static_cast<uint8_t>(model(i));
    const auto part = part_of(nodes, 400);
    EXPECT_EQ(part.size(), 400U);
    return std::count_if(part.begin(), part.end(), [](const Node& node) { return node.model > 0; });
  };
  EXPECT_EQ(with_models([](size_t i) { return i % 2; }), 200);
  EXPECT_EQ(with_models([](size_t i) { return i / 400; }), 200);
  EXPECT_NEAR(with_models([](size_t i) { return i % 4 == 1; }), 100, 1);
  EXPECT_EQ(part_of(nodes, 800), nodes);
}

TEST(SharingPlacement, AnUnknownPolicyNamesTheKnown) {
  const auto wrong = make_scorer("fastest", {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kNotFound);
  EXPECT_NE(wrong.error().message.find("share-published"), std::string::npos);
}

// Whatever comes and goes: what is placed fits (the cluster throws otherwise), what is refused fits
// nowhere, and what the placer remembers does not change what it says.
class EveryPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, PlacesWhateverFits) {
  const auto trace = generate_pods(3, 12, 400);
  const auto scorer = make_scorer(GetParam(), {requests_of(trace), trace.nodes}).value();
  Cluster cluster(trace.nodes);
  Placer placer(*scorer);
  SeededRandom random(5);
  std::vector<std::pair<Request, Placement>> running;
  for (const auto& pod : trace.pods) {
    const Request request = scorer->given(pod.request);
    const auto placement = placer.choose(cluster, request);
    EXPECT_EQ(placement, Placer(*scorer).choose(cluster, request));
    if (placement) {
      cluster.take(request, *placement);
      running.emplace_back(request, *placement);
    } else {
      for (const auto& node : cluster.nodes()) EXPECT_FALSE(fits(node, request));
    }
    if (!running.empty() && random.chance(0.4)) {
      std::swap(running[random.below(running.size())], running.back());
      cluster.release(running.back().first, running.back().second);
      running.pop_back();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SharingPlacement, EveryPolicy, testing::ValuesIn(scorers().names()));

}  // namespace
}  // namespace tierpilot::sharing
