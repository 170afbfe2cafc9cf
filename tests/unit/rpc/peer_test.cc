#include "rpc/peer.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tierpilot {
namespace {

bool at(const Peer& peer, std::string_view address) {
  return is_at(peer, Address::parse(address).value());
}

Peer tls(std::string address) {
  return {"tls", {}, {}, "n1", std::move(address), {"n1.cluster", "*.lab"}};
}

TEST(IsAt, TheHostThatTheConnectionComesFrom) {
  EXPECT_TRUE(at(tls("10.0.0.7:40312"), "tls:10.0.0.7:7000"));
  EXPECT_FALSE(at(tls("10.0.0.7:40312"), "tls:10.0.0.8:7000"));
  EXPECT_TRUE(at(tls("[fd00::7]:40312"), "tls:[fd00:0::7]:7000"));
  EXPECT_FALSE(at(tls("[fd00::7]:40312"), "tls:10.0.0.7:7000"));
  EXPECT_TRUE(at(tls("[::ffff:10.0.0.7]:40312"), "tls:10.0.0.7:7000"));
}

TEST(IsAt, AHostByNameThatTheCertificateNames) {
  EXPECT_TRUE(at(tls("10.0.0.7:40312"), "tls:N1.cluster:7000"));
  EXPECT_FALSE(at(tls("10.0.0.7:40312"), "tls:n2.cluster:7000"));
  EXPECT_FALSE(at(tls("10.0.0.7:40312"), "tls:n1:7000")) << "its subject is no host";
  EXPECT_FALSE(at(tls("10.0.0.7:40312"), "tls:any.lab:7000")) << "one for many names no one";
}

TEST(IsAt, UnixSocketsOfTheSameUser) {
  const Peer mine{"unix", ::geteuid(), 1, "", {}, {}};
  const Peer other{"unix", ::geteuid() + 1, 1, "", {}, {}};
  EXPECT_TRUE(at(mine, "unix:/run/data.sock"));
  EXPECT_FALSE(at(other, "unix:/run/data.sock"));
  EXPECT_FALSE(at(mine, "tls:10.0.0.7:7000"));
  EXPECT_FALSE(at(tls("10.0.0.7:40312"), "unix:/run/data.sock"));
  EXPECT_FALSE(at(Peer{}, "unix:/run/data.sock"));
  EXPECT_FALSE(at(Peer{}, "tls:10.0.0.7:7000"));
}

}  // namespace
}  // namespace tierpilot
