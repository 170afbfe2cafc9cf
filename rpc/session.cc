#include "rpc/session.h"

#include <utility>

namespace tierpilot {

using capnp::rpc::twoparty::Side;
using capnp::rpc::twoparty::VatId;

Session::Session(EventLoop& loop, Channel channel, const RpcLimits& limits, Side side,
                 kj::Maybe<capnp::Capability::Client> exported, FrameStream::OnFailure on_failure,
                 std::shared_ptr<PeerUse> use)
    : channel_(kj::mv(channel)),
      frames_(loop, *channel_.stream, limits, side == Side::SERVER, std::move(on_failure),
              std::move(use)),
      network_(frames_, side),
      rpc_(network_, kj::mv(exported)) {
  rpc_.setFlowLimit(limits.max_unanswered_bytes / sizeof(capnp::word));
}

capnp::Capability::Client Session::bootstrap() {
  capnp::MallocMessageBuilder message(4);
  auto peer_vat = message.initRoot<VatId>();
  peer_vat.setSide(network_.side() == Side::CLIENT ? Side::SERVER : Side::CLIENT);
  return rpc_.bootstrap(peer_vat);
}

}  // namespace tierpilot
