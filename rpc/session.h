// Cap'n Proto RPC over one channel: what a server's and a client's connection have in common.
#pragma once

#include "rpc/peer_network.h"
#include "rpc/stream/frame_stream.h"
#include "rpc/transport.h"

namespace tierpilot {

class Session {
 public:
  // `exported` is what the peer's bootstrap() gets; none if null.
  Session(EventLoop& loop, Channel channel, const RpcLimits& limits,
          capnp::rpc::twoparty::Side side, kj::Maybe<capnp::Capability::Client> exported,
          FrameStream::OnFailure on_failure, std::shared_ptr<PeerUse> use = nullptr);

  const Peer& peer() const { return channel_.peer; }
  capnp::Capability::Client bootstrap();
  // Resolves, never rejects, when the protocol has ended and what we had to say has been sent.
  kj::Promise<void> on_disconnect() { return network_.on_disconnect(); }
  // See FrameStream.
  size_t open_questions() const { return frames_.open_questions(); }
  std::optional<int64_t> idle_since_ns() const { return frames_.idle_since_ns(); }

 private:
  Channel channel_;
  FrameStream frames_;
  PeerNetwork network_;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc_;
};

}  // namespace tierpilot
