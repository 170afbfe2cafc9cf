// Programs of other versions at the real coordinator: they work, or are told why not.
#include <gtest/gtest.h>

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

TEST(Protocol, OtherVersionsWorkOrAreToldWhyNot) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.nodes = 1});
  cluster.client().disconnect();  // a thread has one event loop
  {
    auto opened = ClusterConnection::open({.address = cluster.address()});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE((*opened)->coordinator().can(kGangFeature));
    expect_others_are_welcome(**opened);
    expect_strangers_are_told(**opened);
  }
  ASSERT_TRUE(cluster.client().connect());
  EXPECT_TRUE(cluster.nodes_are_up(1));
}

}  // namespace
}  // namespace tierpilot::test
