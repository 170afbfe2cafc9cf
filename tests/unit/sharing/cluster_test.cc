#include "policies/sharing/cluster.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tierpilot::sharing {
namespace {

Node node_of(size_t units) {
  Node node{.cpu_milli = 8000, .memory_bytes = 1 << 20, .model = 3, .units = {}};
  node.units.resize(units);
  return node;
}

Request part(uint32_t milli, uint32_t units = 1) {
  return {.cpu_milli = 1000, .units = units, .share = {.milli = milli}};
}

TEST(SharingCluster, CountsWhatIsGivenAndTakesItBack) {
  Cluster cluster({node_of(2)});
  EXPECT_EQ(cluster.capacity_milli(), 2000U);
  const auto version = cluster.version(0);
  cluster.take(part(600), {0, {1}});
  EXPECT_EQ(cluster.given_milli(), 600U);
  EXPECT_NE(cluster.version(0), version);
  EXPECT_FALSE(fits(cluster.nodes()[0], part(500, 2)));
  cluster.release(part(600), {0, {1}});
  EXPECT_EQ(cluster.given_milli(), 0U);
  EXPECT_TRUE(fits(cluster.nodes()[0], part(1000, 2)));
}

TEST(SharingCluster, RefusesToGiveAnythingTwice) {
  Cluster cluster({node_of(1)});
  cluster.take(part(600), {0, {0}});
  EXPECT_THROW(cluster.take(part(600), {0, {0}}), std::logic_error);
  EXPECT_THROW(cluster.take(part(100, 2), {0, {0, 0}}), std::logic_error);
  EXPECT_EQ(cluster.given_milli(), 600U);
}

TEST(SharingCluster, AUnitOfAnotherModelOrWithoutItsMemoryDoesNotFit) {
  Node node = node_of(1);
  Request request = part(100);
  request.models = uint64_t{1} << 2;
  EXPECT_FALSE(fits(node, request));
  request.models = uint64_t{1} << 3;
  EXPECT_TRUE(fits(node, request));
  request.share.memory_bytes = 1;
  EXPECT_FALSE(fits(node, request));
  node.units[0].free_bytes = 1;
  EXPECT_TRUE(fits(node, request));
}

}  // namespace
}  // namespace tierpilot::sharing
