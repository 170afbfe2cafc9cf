// From an address or an accepted descriptor to a stream whose other end is known.
#pragma once

#include <optional>

#include "base/unique_fd.h"
#include "rpc/address.h"
#include "rpc/event_loop.h"
#include "rpc/limits.h"
#include "rpc/peer.h"
#include "rpc/stream/byte_stream.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

struct Channel {
  kj::Own<ByteStream> stream;
  Peer peer;
};

// Both reject with an Error that names the address: kUnreachable (nobody there), kDenied (a
// certificate was refused), kTimeout (limits.handshake_timeout_ms), kInvalid (the TLS files).

// Connects, and with TLS shows our certificate and checks the peer's for the address's host.
kj::Promise<Channel> dial(EventLoop& loop, const Address& address, const Tls& tls,
                          const RpcLimits& limits);

// `fd` was accepted on a socket of listen_on(); `tls` is null for a Unix socket.
kj::Promise<Channel> welcome(EventLoop& loop, UniqueFd fd, const Tls& tls, const RpcLimits& limits);

}  // namespace tierpilot
