// The listening side. A bad peer costs its own connection and a line in the log, nothing else.
#pragma once

#include <capnp/capability.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "rpc/address.h"
#include "rpc/event_loop.h"
#include "rpc/limits.h"
#include "rpc/peer.h"
#include "rpc/stream/unsent.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

class RpcServer {
 public:
  // Makes the capability that a new connection may use, which is told how much of what it answers
  // waits there; it may throw to_exception() to refuse the peer, who then gets that error.
  using Bootstrap =
      std::function<capnp::Capability::Client(const Peer&, const std::shared_ptr<const Unsent>&)>;

  // A Unix path is replaced if it is stale, made with mode 0660, and removed with the server.
  // TLS addresses need `tls`. kConflict when another process listens there.
  static Result<std::unique_ptr<RpcServer>> listen(EventLoop& loop, const Address& address,
                                                   const Tls& tls, const RpcLimits& limits,
                                                   Bootstrap bootstrap);
  // Closes every connection. Must not run inside a call of one of them.
  ~RpcServer();

  Address address() const;                        // with the real port when 0 was asked
  size_t connections() const;                     // that speak RPC now
  const std::shared_ptr<Unsent>& unsent() const;  // of all connections
  uint64_t rejected_frames() const;               // each closed its connection
  uint64_t rejected_peers() const;                // by the connection limit, TLS or `bootstrap`

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierpilot
