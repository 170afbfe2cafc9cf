// The test service of echo.capnp.
#pragma once

#include "rpc/peer.h"
#include "tests/rpc/echo.capnp.h"

namespace tierpilot::test {

class EchoServer final : public Echo::Server {
 public:
  explicit EchoServer(Peer peer = {}) : peer_(std::move(peer)) {}

  kj::Promise<void> echo(EchoContext context) override;
  kj::Promise<void> blob(BlobContext context) override;
  kj::Promise<void> make(MakeContext context) override;
  kj::Promise<void> child(ChildContext context) override;
  kj::Promise<void> notify(NotifyContext context) override;
  kj::Promise<void> never(NeverContext context) override;
  kj::Promise<void> fail(FailContext context) override;
  kj::Promise<void> peer(PeerContext context) override;
  kj::Promise<void> deep(DeepContext context) override;

 private:
  Peer peer_;
};

}  // namespace tierpilot::test
