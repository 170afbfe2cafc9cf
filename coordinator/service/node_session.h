// One registered daemon's side of the wire: its ordered events in, acknowledgements and lease out.
#pragma once

#include "coordinator/service/core.h"
#include "coordinator/service/node_cards.h"
#include "coordinator/service/rpc_node_link.h"
#include "rpc/event_loop.h"
#include "rpc/node.capnp.h"

namespace tierpilot {

class NodeSession final : public wire::NodeSession::Server {
 public:
  NodeSession(EventLoop& loop, Core& core, NodeCards& cards, std::shared_ptr<RpcNodeLink> link,
              Membership::Ticket ticket)
      : loop_(loop),
        core_(core),
        cards_(cards),
        link_(std::move(link)),
        ticket_(std::move(ticket)),
        core_lives_(core.lives()) {}
  // The capability goes when the connection does, or an update that waits for the disk: as the
  // process ends, that is after the core.
  ~NodeSession() noexcept(false) {
    if (!core_lives_.expired()) core_.membership.disconnected(ticket_);
  }

  kj::Promise<void> update(UpdateContext context) override;
  kj::Promise<void> describe(DescribeContext context) override;
  kj::Promise<void> leave(LeaveContext context) override;

 private:
  // What has reached the disk of the events of one update.
  struct Progress;
  void apply(wire::NodeEvent::Reader event, const std::shared_ptr<Progress>& progress);
  void answer(UpdateContext& context, const Progress& progress);

  EventLoop& loop_;
  Core& core_;
  NodeCards& cards_;
  std::shared_ptr<RpcNodeLink> link_;
  Membership::Ticket ticket_;
  const std::weak_ptr<const bool> core_lives_;
  uint64_t acknowledged_ = 0;  // highest sequence below which everything is on disk
};

}  // namespace tierpilot
