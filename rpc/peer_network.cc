#include "rpc/peer_network.h"

#include <kj/debug.h>

#include <utility>

namespace tierpilot {

using capnp::rpc::twoparty::Side;
using capnp::rpc::twoparty::VatId;

class PeerNetwork::Outgoing final : public capnp::OutgoingRpcMessage {
 public:
  Outgoing(FrameStream& frames, kj::uint first_segment_words)
      : frames_(frames),
        message_(first_segment_words ? first_segment_words : capnp::SUGGESTED_FIRST_SEGMENT_WORDS) {
  }

  capnp::AnyPointer::Builder getBody() override { return message_.getRoot<capnp::AnyPointer>(); }
  void send() override {
    // The caller's fault: its call fails, not the connection.
    KJ_REQUIRE(sizeInWords() <= frames_.max_message_words(),
               "Trying to send a message larger than our single-message size limit.");
    frames_.write(message_.getSegmentsForOutput());
  }
  size_t sizeInWords() override { return message_.sizeInWords(); }

 private:
  FrameStream& frames_;
  capnp::MallocMessageBuilder message_;
};

PeerNetwork::PeerNetwork(FrameStream& frames, Side side) : frames_(frames), side_(side) {
  peer_id_.initRoot<VatId>().setSide(side == Side::CLIENT ? Side::SERVER : Side::CLIENT);
  auto gone = kj::newPromiseAndFulfiller<void>();
  disconnected_ = gone.promise.fork();
  last_reference_.gone = kj::mv(gone.fulfiller);
}

kj::Own<PeerNetwork::Link> PeerNetwork::as_connection() {
  ++last_reference_.references;
  return kj::Own<Link>(this, last_reference_);
}

kj::Maybe<kj::Own<PeerNetwork::Link>> PeerNetwork::connect(VatId::Reader peer) {
  if (peer.getSide() == side_) return nullptr;
  return as_connection();
}

kj::Promise<kj::Own<PeerNetwork::Link>> PeerNetwork::accept() {
  if (side_ == Side::SERVER && !std::exchange(accepted_, true)) return as_connection();
  return kj::NEVER_DONE;
}

kj::Own<capnp::RpcFlowController> PeerNetwork::newStream() {
  return capnp::RpcFlowController::newFixedWindowController(frames_.window_bytes());
}

VatId::Reader PeerNetwork::getPeerVatId() {
  return peer_id_.getRoot<VatId>();
}

kj::Own<capnp::OutgoingRpcMessage> PeerNetwork::newOutgoingMessage(kj::uint first_segment_words) {
  return kj::heap<Outgoing>(frames_, first_segment_words);
}

kj::Promise<kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>> PeerNetwork::receiveIncomingMessage() {
  return frames_.read();
}

kj::Promise<void> PeerNetwork::shutdown() {
  return frames_.end();
}

}  // namespace tierpilot
