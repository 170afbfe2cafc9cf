#include "rpc/address.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Address, UnixPathIsKept) {
  const auto address = Address::parse("unix:/run/tierpilot/coordinator.sock");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->kind, Address::Kind::kUnix);
  EXPECT_EQ(address->path, "/run/tierpilot/coordinator.sock");
  EXPECT_EQ(address->to_string(), "unix:/run/tierpilot/coordinator.sock");
}

TEST(Address, TlsHostAndPort) {
  const auto address = Address::parse("tls:node-7.example:7070");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->kind, Address::Kind::kTls);
  EXPECT_EQ(address->host, "node-7.example");
  EXPECT_EQ(address->port, 7070);
  EXPECT_EQ(address->to_string(), "tls:node-7.example:7070");
  EXPECT_EQ(Address::parse("tls:0.0.0.0:0")->port, 0);
  EXPECT_EQ(Address::parse("tls:0.0.0.0:65535")->port, 65535);
}

TEST(Address, Ipv6StandsInBrackets) {
  const auto address = Address::parse("tls:[::1]:7070");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->to_string(), "tls:[::1]:7070");
  EXPECT_FALSE(Address::parse("tls:::1:7070"));
}

TEST(Address, LongestUnixPathIsTheKernels) {
  EXPECT_TRUE(Address::parse("unix:/" + std::string(106, 'a')));
  EXPECT_FALSE(Address::parse("unix:/" + std::string(107, 'a')));
}

TEST(Address, WrongTextIsRefusedAndNamed) {
  for (const std::string text :
       {"", "unix:", "unix:relative.sock", "tcp:host:1", "tls:", "tls:host", "tls::7070",
        "tls:host:", "tls:host:x", "tls:host:65536", "tls:host:-1", "tls:host:70 ", "tls:host:+7",
        "tls:ho st:7070", "tls:[]:7070", "/run/x.sock", "unix"}) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalid);
    EXPECT_NE(address.error().message.find(text), std::string::npos) << address.error().message;
  }
  EXPECT_FALSE(Address::parse(std::string("unix:/a\0b", 9)));
  EXPECT_FALSE(Address::parse("tls:" + std::string(300, 'h') + ":1"));
}

}  // namespace
}  // namespace tierpilot
