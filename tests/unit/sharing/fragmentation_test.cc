#include "policies/sharing/fragmentation.h"

#include <gtest/gtest.h>

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
      {{request_of(1, 500, 1000), 0.5}, {request_of(2, 1000, 1000), 0.5}},
      Fragmentation::Host::kCpu);
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

TEST(UsableShare, SeesThatCoresForOneKeepOtherUnitsIdle) {
  const UsableShare usable({{request_of(1, 1000, 4000), 1}});
  // One request fits of which any of four units will do: (4000 + 1000) / 2.
  EXPECT_DOUBLE_EQ(usable.milli(node_with(4000, {1000, 1000, 1000, 1000})), 2500);
  EXPECT_DOUBLE_EQ(usable.milli(node_with(16000, {1000, 1000, 1000, 1000})), 4000);
  EXPECT_DOUBLE_EQ(usable.milli(node_with(16000, {900, 900})), 0);
}

}  // namespace
}  // namespace tierpilot::sharing
