// Programs of other versions at the real coordinator: they work, or are told why not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "rpc/protocol.h"
#include "tests/system/cluster.h"
#include "tools/cluster/connection.h"

namespace tierpilot::test {
namespace {

ProgramVersion version(const char* program, uint16_t oldest, uint16_t newest) {
  return {.program = program, .version = "9.0", .protocol = newest, .oldest_protocol = oldest};
}

// A client from before there was a greeting asks at once; one that speaks more too is welcome.
void expect_others_are_welcome(ClusterConnection& connection) {
  EXPECT_TRUE(connection.call(connection.cluster().healthRequest()));
  auto hello = connection.cluster().helloRequest();
  write_program(version("tierctl", kProtocol, kProtocol + 5), hello.initProgram());
  const auto greeted = connection.call(kj::mv(hello));
  ASSERT_TRUE(greeted) << greeted.error().message;
  EXPECT_EQ(read_program(greeted->getProgram(), "").label(),
            own_program("tierpilot-coordinator").label());
}

// One that no longer understands what this coordinator says, and a node like it.
void expect_strangers_are_told(ClusterConnection& connection) {
  auto hello = connection.cluster().helloRequest();
  write_program(version("tierctl", kProtocol + 1, kProtocol + 5), hello.initProgram());
  const auto newer = connection.call(kj::mv(hello));
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("tierctl 9.0"), std::string::npos) << newer.error().message;
  EXPECT_NE(newer.error().message.find("update tierpilot-coordinator"), std::string::npos)
      << newer.error().message;
  auto join = connection.cluster().registerNodeRequest();
  join.initInfo().setName("late");
  write_program(version("tierpilotd", kProtocol + 1, kProtocol + 1), join.getInfo().initProgram());
  const auto node = connection.call(kj::mv(join));
  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("tierpilotd 9.0"), std::string::npos) << node.error().message;
}

class SilentNode : public wire::Node::Server {};

constexpr uint32_t kGpus = 200;

// A node whose GPUs have a lot to say, nearly as much as a frame holds.
wire::NodeSession::Client join_talkative(ClusterConnection& connection, const std::string& name) {
  auto join = connection.cluster().registerNodeRequest();
  auto info = join.initInfo();
  write_program(own_program("tierpilotd"), info.initProgram());
  info.setName(name);
  info.setInstance(1);
  info.setUnits(1);
  info.setMemoryBytes(uint64_t{1} << 30);
  info.setFastBudgetBytes(uint64_t{1} << 30);
  info.setSlowBudgetBytes(uint64_t{1} << 30);
  info.setDataAddress("unix:/nonexistent/" + name);
  auto gpus = info.initGpus(kGpus);
  for (uint32_t i = 0; i < kGpus; ++i) gpus[i].setUuid("GPU-" + std::to_string(i));
  join.setNode(wire::Node::Client(kj::heap<SilentNode>()));
  auto joined = connection.call(kj::mv(join));
  EXPECT_TRUE(joined) << joined.error().message;
  auto session = joined->getSession();
  auto update = session.updateRequest();
  auto readings = update.initStatus().initGpus(kGpus);
  for (uint32_t i = 0; i < kGpus; ++i) {
    readings[i].setUuid("GPU-" + std::to_string(i));
    readings[i].initTemperatureC().setUnavailable(std::string(15'000, 'x'));
    readings[i].initMemoryUsedBytes().setValue(std::nan(""));
    readings[i].initBusyPercent().setValue(40);
  }
  const auto updated = connection.call(kj::mv(update));
  EXPECT_TRUE(updated) << updated.error().message;
  return session;
}

// In place of the cluster's own client: a thread has one event loop.
void on_a_connection(Cluster& cluster, const std::function<void(ClusterConnection&)>& work) {
  cluster.client().disconnect();
  {
    auto opened = ClusterConnection::open({.address = cluster.address()});
    ASSERT_TRUE(opened) << opened.error().message;
    work(**opened);
  }
  ASSERT_TRUE(cluster.client().connect());
}

// What all units are has to fit a frame, whatever nodes said.
TEST(Protocol, WhatNodesSayOfTheirGpusSpoilsNoList) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.nodes = 1});
  on_a_connection(cluster, [](ClusterConnection& connection) {
    const auto one = join_talkative(connection, "talks"), other = join_talkative(connection, "too");
    const auto units = connection.call(connection.cluster().unitListRequest());
    ASSERT_TRUE(units) << units.error().message;
    uint32_t busy = 0;
    for (const auto unit : units->getUnits()) {
      EXPECT_LT(unit.getTemperatureC().getUnavailable().size(), 200U);
      EXPECT_GT(unit.getMemoryBytes().getUnavailable().size(), 0U);
      busy += unit.getBusyPercent().getValue() == 40;
    }
    EXPECT_EQ(busy, 2 * kGpus);
  });
}

TEST(Protocol, OtherVersionsWorkOrAreToldWhyNot) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.nodes = 1});
  on_a_connection(cluster, [](ClusterConnection& connection) {
    EXPECT_TRUE(connection.coordinator().can(kGangFeature));
    expect_others_are_welcome(connection);
    expect_strangers_are_told(connection);
  });
  EXPECT_TRUE(cluster.nodes_are_up(1));
}

}  // namespace
}  // namespace tierpilot::test
