// The two ends of one connection, as Cap'n Proto's RPC sees them. In place of TwoPartyVatNetwork: a
// FrameStream takes a message as soon as it is sent, so that no queue of promises is needed between
// the two.
#pragma once

#include <capnp/rpc-twoparty.h>

#include "rpc/stream/frame_stream.h"

namespace tierpilot {

class PeerNetwork final : public capnp::TwoPartyVatNetworkBase,
                          private capnp::TwoPartyVatNetworkBase::Connection {
 public:
  using Link = capnp::TwoPartyVatNetworkBase::Connection;

  PeerNetwork(FrameStream& frames, capnp::rpc::twoparty::Side side);
  KJ_DISALLOW_COPY(PeerNetwork);

  capnp::rpc::twoparty::Side side() const { return side_; }
  // Resolves, never rejects, when the protocol has ended and what we had to say has been sent.
  kj::Promise<void> on_disconnect() { return disconnected_.addBranch(); }

  // A network has one connection: towards the other side.
  kj::Maybe<kj::Own<Link>> connect(capnp::rpc::twoparty::VatId::Reader peer) override;
  kj::Promise<kj::Own<Link>> accept() override;

 private:
  class Outgoing;
  // Of the connection, which is this object: tells that the RPC system has let go of it.
  class LastReference final : public kj::Disposer {
   public:
    void disposeImpl(void*) const override {
      if (--references == 0) gone->fulfill();
    }
    mutable size_t references = 0;
    mutable kj::Own<kj::PromiseFulfiller<void>> gone;
  };

  kj::Own<Link> as_connection();

  kj::Own<capnp::RpcFlowController> newStream() override;
  capnp::rpc::twoparty::VatId::Reader getPeerVatId() override;
  kj::Own<capnp::OutgoingRpcMessage> newOutgoingMessage(kj::uint first_segment_words) override;
  kj::Promise<kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>> receiveIncomingMessage() override;
  kj::Promise<void> shutdown() override;

  FrameStream& frames_;
  const capnp::rpc::twoparty::Side side_;
  capnp::MallocMessageBuilder peer_id_{4};
  bool accepted_ = false;
  LastReference last_reference_;
  kj::ForkedPromise<void> disconnected_ = nullptr;
};

}  // namespace tierpilot
