// The Cluster interface's part about nodes, but for their registration.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "coordinator/service/cluster_service.h"
#include "coordinator/service/wire.h"
#include "coordinator/store/records.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kPage = 500;
constexpr uint32_t kShownEvents = 20;

[[noreturn]] void refuse(ErrorCode code, std::string message) {
  kj::throwFatalException(to_exception({code, std::move(message)}));
}

using Fulfiller = std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>>;

void settle(const Fulfiller& fulfiller, const Status& status) {
  if (status)
    (*fulfiller)->fulfill();
  else
    (*fulfiller)->reject(to_exception(status.error()));
}

}  // namespace

void ClusterService::write_node(const NodeRecord& node, wire::NodeEntry::Builder out) {
  const auto& name = node.facts.name;
  if (auto* card = shared_.cards.find(name)) {
    out.setInfo(card->info->getRoot<wire::NodeInfo>().asReader());
    out.setStatus(card->status->getRoot<wire::NodeStatus>().asReader());
  } else {
    out.initInfo().setName(name);
  }
  out.setState(node_life_name(node.life));
  const int64_t left_ns = node.lease_end_ns - core().state.clock.boot_ns();
  out.setLeaseLeftMs(std::max<int64_t>(left_ns / 1'000'000, 0));
  out.setAssignedUnits(node.assigned_units);
  out.setKeptBackUnits(core().state.held.load(node.slot).units);
  out.setTasksRunning(static_cast<uint32_t>(node.held.size()));
  out.setTasksDone(node.tasks_done);
  out.setDatasets(core().state.catalog.count_on(name));
  if (node.life == NodeLife::kUp && !node.link)
    out.setReason("not connected");
  else if (node.life == NodeLife::kLost)
    out.setReason("its lease ended without a word from it");
  else if (node.life == NodeLife::kExpected)
    out.setReason("tasks were left on it; it has not come back yet");
  else
    out.setReason(node.closed_because());
  out.setOrder(node_order_name(node.order.kind, node.tasks_left() > 0));
  out.setDrainedByMs(node.order.deadline_ms);
}

kj::Promise<void> ClusterService::nodeList(NodeListContext context) {
  allow_reading();
  const auto params = context.getParams();
  const uint32_t limit = params.getLimit() ? std::min(params.getLimit(), kPage) : kPage;
  const auto& nodes = core().state.registry.all();
  std::vector<const NodeRecord*> page;
  size_t bytes = 0;
  for (auto it = nodes.upper_bound(text(params.getAfter()));
       it != nodes.end() && page.size() < limit && (page.empty() || bytes < kPageBytes); ++it) {
    page.push_back(&it->second);
    bytes += shared_.cards.bytes(it->first);
  }
  auto out = context.getResults().initNodes(static_cast<unsigned>(page.size()));
  for (unsigned i = 0; i < out.size(); ++i) write_node(*page[i], out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::nodeShow(NodeShowContext context) {
  allow_reading();
  const auto name = text(context.getParams().getName());
  const auto* node = core().state.registry.find(name);
  if (!node) refuse(ErrorCode::kNotFound, fmt::format("node '{}' does not exist", name));
  auto results = context.getResults();
  write_node(*node, results.initNode());
  const auto events =
      value_or_throw(records::node_events(core().state.store.reader(), name, kShownEvents));
  auto notes = results.initNotes(static_cast<unsigned>(events.size()));
  for (unsigned i = 0; i < notes.size(); ++i) {
    notes[i].setAtMs(events[i].at_ms);
    notes[i].setWhat(events[i].what);
    notes[i].setWhy(events[i].why);
  }
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::nodeOrder(NodeOrderContext context) {
  const auto params = context.getParams();
  const auto name = text(params.getName());
  const auto kind = parse_node_order(text(params.getOrder()));
  if (!kind)
    refuse(ErrorCode::kInvalid,
           fmt::format("order '{}': must be open, cordon or drain", text(params.getOrder())));
  if (params.getWithinMs() < 0)
    refuse(ErrorCode::kInvalid, "the time of a drain must not be negative");
  allow_change(Role::kOperate, fmt::format("order node '{}': {}", name, text(params.getOrder())));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  core().nodes.order(name, *kind, params.getWithinMs(), peer_.name,
                     [fulfiller](Status status) { settle(fulfiller, status); });
  if (*kind == NodeOrder::Kind::kDrained)
    core().checkpoints.ask_all_on(name, fmt::format("node '{}' is drained", name));
  core().dispatcher.pump();
  return paf.promise.then([this, self = thisCap(), context, name]() mutable {
    if (const auto* node = core().state.registry.find(name))
      write_node(*node, context.getResults().initNode());
  });
}

kj::Promise<void> ClusterService::nodeRemove(NodeRemoveContext context) {
  const auto name = text(context.getParams().getName());
  allow_change(Role::kOperate, fmt::format("remove node '{}'", name));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  core().nodes.remove(name, peer_.name, [&cards = shared_.cards, name, fulfiller](Status status) {
    if (status) cards.forget(name);
    settle(fulfiller, status);
  });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
