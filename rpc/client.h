// The connecting side.
#pragma once

#include <capnp/capability.h>
#include <kj/async.h>

#include <memory>
#include <optional>

#include "rpc/address.h"
#include "rpc/event_loop.h"
#include "rpc/limits.h"
#include "rpc/peer.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

class Session;

class RpcConnection {
 public:
  // Resolves when the server has answered, so a refusal (its limit, our certificate) shows here and
  // not in the first call. Rejects with an Error (see to_error): kUnreachable, kDenied, kTimeout.
  // What the server shall call back is given to it as a parameter of a call.
  static kj::Promise<kj::Own<RpcConnection>> connect(EventLoop& loop, const Address& address,
                                                     const Tls& tls, const RpcLimits& limits = {});

  RpcConnection(std::unique_ptr<Session> session, capnp::Capability::Client bootstrap);
  // Fails unanswered calls with DISCONNECTED. Must not run inside one of their continuations.
  ~RpcConnection();

  capnp::Capability::Client bootstrap() { return bootstrap_; }
  kj::Promise<void> on_disconnect();
  const Peer& peer() const;

 private:
  std::unique_ptr<Session> session_;
  capnp::Capability::Client bootstrap_;
};

}  // namespace tierpilot
