#include "coordinator/service/node_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "coordinator/service/node_session.h"
#include "coordinator/service/rpc_node_link.h"
#include "coordinator/service/wire.h"
#include "coordinator/store/records.h"
#include "rpc/error.h"
#include "rpc/protocol.h"

namespace tierpilot {
namespace {

constexpr uint32_t kMostNodes = 500;
constexpr uint32_t kNodeEvents = 20;

using Fulfiller = std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>>;

void settle(const Fulfiller& fulfiller, const Status& status) {
  if (status)
    (*fulfiller)->fulfill();
  else
    (*fulfiller)->reject(to_exception(status.error()));
}

}  // namespace

void NodeService::write_node(const NodeRecord& node, const DatasetCounts& datasets,
                             wire::NodeEntry::Builder out) const {
  const auto& name = node.facts.name;
  if (auto* card = caller_->shared().cards.find(name)) {
    out.setInfo(card->info->getRoot<wire::NodeInfo>().asReader());
    out.setStatus(card->status->getRoot<wire::NodeStatus>().asReader());
  } else {
    out.initInfo().setName(name);
  }
  out.setState(node.life_name());
  const int64_t left_ns = node.lease_end_ns - caller_->core().state.clock.boot_ns();
  out.setLeaseLeftMs(std::max<int64_t>(left_ns / 1'000'000, 0));
  out.setAssignedUnits(node.assigned_units);
  out.setAssignedSwapBytes(node.assigned_swap_bytes);
  out.setKeptBackUnits(caller_->core().state.held.load(node.slot).units);
  out.setTasksRunning(static_cast<uint32_t>(node.held.size()));
  out.setTasksDone(node.tasks_done);
  const auto held = datasets.find(name);
  out.setDatasets(held == datasets.end() ? 0 : held->second);
  if (node.has_left && !node.link)
    out.setReason("its daemon was stopped");
  else if (node.life == NodeLife::kUp && !node.link)
    out.setReason("not connected");
  else if (node.life == NodeLife::kLost)
    out.setReason("its lease ended without a word from it");
  else if (node.life == NodeLife::kExpected)
    out.setReason(node.tasks_left() > 0 ? "tasks were left on it; it has not come back yet"
                                        : "it has not come back since the coordinator's start");
  else
    out.setReason(node.closed_because());
  out.setOrder(node_order_name(node.order.kind, node.tasks_left() > 0));
  out.setDrainedByMs(node.order.deadline_ms);
}

kj::Promise<void> NodeService::registerNode(RegisterNodeContext context) {
  const auto params = context.getParams();
  const auto facts = read_facts(params.getInfo());
  const auto own = own_program("tierpilot-coordinator");
  value_or_throw(check_programs(own, read_program(params.getInfo().getProgram(), "tierpilotd")));
  // Between machines a node is who its certificate says it is.
  if (caller_->peer().transport == "tls" && caller_->peer().name != facts.name)
    refuse(ErrorCode::kDenied, fmt::format("node '{}': its certificate is made out to '{}'",
                                           facts.name, caller_->peer().name));
  if (!caller_->shared().access.may_join(caller_->peer()))
    refuse(ErrorCode::kDenied,
           fmt::format("node '{}' is not among those that may join ([users] nodes "
                       "in the coordinator's configuration)",
                       facts.name));
  std::vector<std::pair<std::string, ReplicaState>> replicas;
  for (const auto replica : params.getReplicas())
    replicas.emplace_back(text(replica.getDataset()), read_replica(replica));
  std::set<AttemptId> live;
  for (const auto attempt : params.getLive()) live.insert(read_attempt(attempt));
  auto link = std::make_shared<RpcNodeLink>(caller_->shared().loop, facts.name, params.getNode());
  auto ticket = value_or_throw(caller_->core().membership.join(facts, link, replicas, live));
  caller_->shared().cards.joined(facts.name, params.getInfo(), params.getNode());
  auto results = context.getResults();
  results.setSession(kj::heap<NodeSession>(caller_->shared().loop, caller_->core(),
                                           caller_->shared().cards, link, ticket));
  results.setLeaseMs(static_cast<uint32_t>(caller_->core().state.settings.lease_ms));
  write_program(own, results.initProgram());
  caller_->core().dispatcher.pump();
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::nodeList(NodeListContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  const uint32_t limit = params.getLimit() ? std::min(params.getLimit(), kMostNodes) : kMostNodes;
  const auto& nodes = caller_->core().state.registry.all();
  std::vector<const NodeRecord*> page;
  size_t bytes = 0;
  for (auto it = nodes.upper_bound(text(params.getAfter()));
       it != nodes.end() && page.size() < limit && (page.empty() || bytes < kPageBytes); ++it) {
    page.push_back(&it->second);
    bytes += caller_->shared().cards.bytes(it->first);
  }
  auto out = context.getResults().initNodes(count(page));
  const auto datasets = caller_->core().state.catalog.counts();
  for (unsigned i = 0; i < out.size(); ++i) write_node(*page[i], datasets, out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::nodeShow(NodeShowContext context) {
  caller_->allow_reading();
  const auto name = text(context.getParams().getName());
  const auto* node = caller_->core().state.registry.find(name);
  if (!node) refuse(ErrorCode::kNotFound, fmt::format("node '{}' does not exist", name));
  auto results = context.getResults();
  write_node(*node, caller_->core().state.catalog.counts(), results.initNode());
  const auto events =
      value_or_throw(records::node_events(caller_->core().state.store.reader(), name, kNodeEvents));
  auto notes = results.initNotes(count(events));
  for (unsigned i = 0; i < notes.size(); ++i) {
    notes[i].setAtMs(events[i].at_ms);
    notes[i].setWhat(events[i].what);
    notes[i].setWhy(events[i].why);
  }
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::nodeOrder(NodeOrderContext context) {
  const auto params = context.getParams();
  const auto name = text(params.getName());
  const auto kind = parse_node_order(text(params.getOrder()));
  if (!kind)
    refuse(ErrorCode::kInvalid,
           fmt::format("order '{}': must be open, cordon or drain", text(params.getOrder())));
  if (params.getWithinMs() < 0)
    refuse(ErrorCode::kInvalid, "the time of a drain must not be negative");
  caller_->allow_change(Role::kOperate,
                        fmt::format("order node '{}': {}", name, text(params.getOrder())));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().nodes.order(
      name, *kind, params.getWithinMs(), caller_->peer().name,
      [&core = caller_->core(), name, kind = *kind, fulfiller](Status status) {
        if (status && kind == NodeOrder::Kind::kDrained)
          core.checkpoints.ask_all_on(name, fmt::format("node '{}' is drained", name));
        if (status) core.dispatcher.pump();
        settle(fulfiller, status);
      });
  return paf.promise.then([this, self = thisCap(), context, name]() mutable {
    const auto& state = caller_->core().state;
    const auto* node = state.registry.find(name);
    if (!node) refuse(ErrorCode::kNotFound, fmt::format("node '{}' was removed meanwhile", name));
    write_node(*node, state.catalog.counts(), context.getResults().initNode());
  });
}

kj::Promise<void> NodeService::nodeRemove(NodeRemoveContext context) {
  const auto name = text(context.getParams().getName());
  caller_->allow_change(Role::kOperate, fmt::format("remove node '{}'", name));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().nodes.remove(name, caller_->peer().name,
                               [&cards = caller_->shared().cards, name, fulfiller](Status status) {
                                 if (status) cards.forget(name);
                                 settle(fulfiller, status);
                               });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
