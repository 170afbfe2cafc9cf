#include "policies/sharing/fragmentation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "policies/sharing/usable_share.h"

namespace tierpilot::sharing {
namespace {

Request request_of(uint32_t units, uint32_t milli, uint32_t cpu_milli) {
  return {.cpu_milli = cpu_milli, .units = units, .share = {.milli = milli}};
}

Node node_with(uint32_t cpu_milli, std::vector<uint32_t> free) {
  Node node{.cpu_milli = cpu_milli};
  for (const auto milli : free) node.units.push_back({milli, 0});
  return node;
}

TEST(Fragmentation, CountsWhatTheMeanRequestCannotUse) {
  // Half of all ask for 0.5 of a unit, half for two whole ones.
  const Fragmentation fragmentation(
      {{request_of(1, 500, 1000), 0.5}, {request_of(2, 1000, 1000), 0.5}});
  // The first can use the whole unit, not the 0.3; the second none of it.
  EXPECT_DOUBLE_EQ(fragmentation.milli(node_with(8000, {1000, 300})), 0.5 * 300 + 0.5 * 1300);
  EXPECT_DOUBLE_EQ(fragmentation.milli(node_with(8000, {1000, 1000})), 0);
  // Without cores all is fragments.
  EXPECT_DOUBLE_EQ(fragmentation.milli(node_with(500, {1000, 1000})), 2000);
  EXPECT_DOUBLE_EQ(fragmentation.milli(node_with(8000, {0, 0})), 0);
}

TEST(Fragmentation, TypicalRequestsAreTheMostFrequentScaledToOne) {
  std::vector<Request> requests(9, request_of(1, 500, 1000));
  requests.push_back(request_of(1, 1000, 1000));
  const auto most = typical_requests(requests, 0.9);
  ASSERT_EQ(most.size(), 1U);
  EXPECT_DOUBLE_EQ(most[0].share, 1);
  EXPECT_EQ(typical_requests(requests, 1).size(), 2U);
  EXPECT_TRUE(typical_requests({}, 1).empty());
}

TEST(Fragmentation, AFewStandForManyThatAreAllUnlike) {
  SeededRandom random(7);
  std::vector<Request> requests(3000, request_of(1, 250, 2000));
  for (uint32_t i = 0; i < 6000; ++i)
    requests.push_back(request_of(1, 1 + static_cast<uint32_t>(random.below(1000)), 100 + i));
  const auto all = typical_requests(requests, 1);
  const auto few = representative(all);
  const auto mean = [](const std::vector<TypicalRequest>& typical, auto&& of) {
    double sum = 0;
    for (const auto& each : typical) sum += each.share * of(each.request);
    return sum;
  };
  EXPECT_GT(few.size(), kMostTypical / 2);
  EXPECT_LE(few.size(), kMostTypical);
  EXPECT_NEAR(mean(few, [](const Request&) { return 1; }), 1, 1e-9);
  EXPECT_NEAR(mean(few, [](const Request& r) { return r.share.milli; }),
              mean(all, [](const Request& r) { return r.share.milli; }), 5);
  EXPECT_NEAR(mean(few, [](const Request& r) { return r.share.milli == 250; }),
              mean(all, [](const Request& r) { return r.share.milli == 250; }), 0.005)
      << "what is frequent stays so";
  EXPECT_EQ(representative(typical_requests({requests.front()}, 1)).size(), 1U);
}

TEST(UsableShare, SeesThatCoresForOneKeepOtherUnitsIdle) {
  const UsableShare usable({{request_of(1, 1000, 4000), 1}});
  // One request fits of which any of four units will do: (4000 + 1000) / 2.
  EXPECT_DOUBLE_EQ(usable.milli(node_with(4000, {1000, 1000, 1000, 1000})), 2500);
  EXPECT_DOUBLE_EQ(usable.milli(node_with(16000, {1000, 1000, 1000, 1000})), 4000);
  EXPECT_DOUBLE_EQ(usable.milli(node_with(16000, {900, 900})), 0);
}

// As the declaration says it, request by request.
double usable_one_by_one(const std::vector<TypicalRequest>& typical, const Node& node) {
  double sum = 0;
  for (const auto& [request, share] : typical) {
    if (!(request.models >> node.model & 1)) continue;
    uint32_t free = 0, fitting = 0;
    uint64_t copies = 0;
    for (const auto& unit : node.units) {
      if (unit.free_milli < request.share.milli) continue;
      free += unit.free_milli;
      copies += unit.free_milli / request.share.milli;
      ++fitting;
    }
    copies /= request.units;
    if (request.cpu_milli > 0)
      copies = std::min<uint64_t>(copies, node.cpu_milli / request.cpu_milli);
    if (request.memory_bytes > 0)
      copies = std::min(copies, node.memory_bytes / request.memory_bytes);
    if (fitting < request.units || copies == 0) continue;
    sum += share * (free + static_cast<double>(copies * request.total_milli())) / 2;
  }
  return sum;
}

TEST(UsableShare, IsWhatItsDeclarationSaysOfAnyNode) {
  SeededRandom random(7);
  const auto one_of = [&](std::vector<uint32_t> values) {
    return values[random.below(values.size())];
  };
  for (int round = 0; round < 50; ++round) {
    std::vector<TypicalRequest> typical;
    for (int i = 0; i < 40; ++i) {
      const bool several = random.below(5) == 0;
      Request request =
          request_of(several ? one_of({2, 4}) : 1, several ? 1000 : one_of({1, 50, 300, 500, 1000}),
                     one_of({0, 1000, 3000, 3500, 16000}));
      request.memory_bytes = one_of({0, 1 << 20, 3 << 20, 4 << 28});
      request.models = one_of({1, 2, 3});
      typical.push_back({request, 1.0 / 40});
    }
    const UsableShare usable(typical);
    for (int i = 0; i < 20; ++i) {
      Node node = node_with(one_of({0, 3499, 7000, 64000}), {});
      node.memory_bytes = one_of({0, (1 << 20) - 1, 12 << 20, 4U << 29});
      node.model = static_cast<uint8_t>(random.below(2));
      UsableShare::OnHost on_host(usable, node);
      for (int state = 0; state < 4; ++state) {
        node.units.clear();
        for (uint64_t unit = random.below(9); unit > 0; --unit)
          node.units.push_back({one_of({0, 49, 300, 700, 1000}), 0});
        const double wanted = usable_one_by_one(typical, node);
        EXPECT_NEAR(usable.milli(node), wanted, 1e-9 * (1 + wanted));
        EXPECT_NEAR(on_host.milli(node.units), wanted, 1e-9 * (1 + wanted));
      }
    }
  }
}

}  // namespace
}  // namespace tierpilot::sharing
