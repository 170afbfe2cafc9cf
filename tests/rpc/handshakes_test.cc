// Connections that wait for their TLS handshake, and what they take of others.
#include <gtest/gtest.h>

#include <deque>

#include "tests/rpc/raw_peer.h"
#include "tests/rpc/tls_scene.h"

namespace tierpilot::test {
namespace {

class Handshake : public Tls {};

// Nobody knows whose they are.
TEST_F(Handshake, SilentConnectionsTakeNobodysPlace) {
  limits_.max_connections = 2;
  limits_.spare_idle_ms = 1;
  limits_.handshake_timeout_ms = 60'000;
  serve(server_files_);
  auto one = connect(loop_, named("localhost"), client_files_);
  auto other = connect(loop_, named("localhost"), client_files_);
  loop_.after_ms(20).wait(loop_.wait_scope());  // both are idle
  std::deque<RawPeer> silent;
  for (int i = 0; i < 8; ++i) silent.emplace_back(server_->address());
  loop_.after_ms(200).wait(loop_.wait_scope());
  EXPECT_EQ(server_->connections(), 2u);
  EXPECT_EQ(echo(loop_, echo_of(*one), "x") + echo(loop_, echo_of(*other), "y"), "xy");
  loop_.after_ms(20).wait(loop_.wait_scope());
  auto known = connect(loop_, named("localhost"), client_files_);
  EXPECT_EQ(echo(loop_, echo_of(*known), "x"), "x") << "one that is known finds room as before";
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_F(Handshake, SilentConnectionsLeaveRoomForSessions) {
  limits_.max_connections = 2;
  limits_.handshake_timeout_ms = 60'000;
  serve(server_files_);
  std::deque<RawPeer> silent;
  for (int i = 0; i < 8; ++i) silent.emplace_back(server_->address());
  loop_.after_ms(100).wait(loop_.wait_scope());
  auto one = connect(loop_, named("localhost"), client_files_);
  auto other = connect(loop_, named("localhost"), client_files_);
  EXPECT_EQ(echo(loop_, echo_of(*one), "x") + echo(loop_, echo_of(*other), "y"), "xy");
}

TEST_F(Handshake, WhereAllWaitForAHandshakeTheLongestMakesRoom) {
  limits_.max_handshakes = 4;
  limits_.spare_handshake_ms = 300;
  limits_.handshake_timeout_ms = 60'000;
  serve(server_files_);
  std::deque<RawPeer> silent;
  for (int i = 0; i < 5; ++i) silent.emplace_back(server_->address());
  EXPECT_EQ(silent[0].receive(100), -1) << "it may be slow";
  auto known = connect(loop_, named("localhost"), client_files_);
  EXPECT_EQ(echo(loop_, echo_of(*known), "x"), "x");
  EXPECT_TRUE(silent[0].is_closed_by_peer());
}

// As nodes do when their coordinator was restarted.
TEST_F(Handshake, MoreThanMayWaitForAHandshakeAllGetIn) {
  constexpr size_t kMany = 24;
  limits_.max_handshakes = 2;
  serve(server_files_);
  const auto identity = value_or_throw(TlsIdentity::load(client_files_));
  auto dials = kj::heapArrayBuilder<kj::Promise<kj::Own<RpcConnection>>>(kMany);
  for (size_t i = 0; i < kMany; ++i)
    dials.add(RpcConnection::connect(loop_, named("localhost"), identity));
  const auto connections = kj::joinPromises(dials.finish()).wait(loop_.wait_scope());
  EXPECT_EQ(server_->connections(), kMany);
  EXPECT_EQ(server_->rejected_peers(), 0u);
}

}  // namespace
}  // namespace tierpilot::test
