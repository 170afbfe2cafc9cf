#include "coordinator/service/cluster_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/audit.h"
#include "coordinator/service/node_session.h"
#include "coordinator/service/policy_wire.h"
#include "coordinator/service/rpc_node_link.h"
#include "coordinator/service/wire.h"
#include "rpc/error.h"
#include "rpc/protocol.h"

namespace tierpilot {
namespace {

constexpr uint32_t kPage = 500;

[[noreturn]] void refuse(ErrorCode code, std::string message) {
  kj::throwFatalException(to_exception({code, std::move(message)}));
}

}  // namespace

kj::Promise<void> ClusterService::health(HealthContext context) {
  auto& state = core().state;
  const int64_t now_ns = state.clock.boot_ns();
  auto out = context.getResults().initHealth();
  out.setVersion(TIERPILOT_VERSION);
  out.setStartedMs(shared_.started_ms);
  out.setDegraded(state.store.trouble());
  out.setNodesUp(state.registry.up_count());
  out.setQueued(state.tasks.queue().size());
  out.setKeptBack(state.held.waiting());
  out.setRunning(state.tasks.running());
  out.setBusyUnitMs(static_cast<uint64_t>(state.scores.busy_unit_ms(now_ns)));
  out.setCapacityUnitMs(static_cast<uint64_t>(state.scores.capacity_unit_ms(now_ns)));
  uint64_t fallbacks = 0;
  for (const auto& [name, score] : state.scores.policies()) fallbacks += score.fallbacks;
  out.setFallbacks(fallbacks);
  out.setRejectedFrames(shared_.rejected_frames());
  out.setNowMs(state.clock.wall_ms());
  const auto active = core().host.active();
  out.setPolicy(active);
  if (const auto* guard = core().oversight.guard(active)) {
    out.setPolicyMode(policy_mode_name(guard->memory().mode));
    out.setPolicyStanding(standing_name(guard->memory().standing));
    out.setPolicyWhy(guard->memory().why);
  }
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::hello(HelloContext context) {
  const auto own = own_program("tierpilot-coordinator");
  const auto client = read_program(context.getParams().getProgram(), "the client");
  value_or_throw(check_programs(own, client));
  write_program(own, context.getResults().initProgram());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::registerNode(RegisterNodeContext context) {
  const auto params = context.getParams();
  const auto facts = read_facts(params.getInfo());
  const auto own = own_program("tierpilot-coordinator");
  value_or_throw(check_programs(own, read_program(params.getInfo().getProgram(), "tierpilotd")));
  // Between machines a node is who its certificate says it is.
  if (peer_.transport == "tls" && peer_.name != facts.name)
    refuse(ErrorCode::kDenied,
           fmt::format("node '{}': its certificate is made out to '{}'", facts.name, peer_.name));
  if (!shared_.access.may_join(peer_))
    refuse(ErrorCode::kDenied,
           fmt::format("node '{}' is not among those that may join ([users] nodes "
                       "in the coordinator's configuration)",
                       facts.name));
  std::vector<std::pair<std::string, ReplicaState>> replicas;
  for (const auto replica : params.getReplicas())
    replicas.emplace_back(text(replica.getDataset()), read_replica(replica));
  std::set<AttemptId> live;
  for (const auto attempt : params.getLive()) live.insert(read_attempt(attempt));
  auto link = std::make_shared<RpcNodeLink>(shared_.loop, facts.name, params.getNode());
  auto ticket = value_or_throw(core().membership.join(facts, link, replicas, live));
  for (const auto& [dataset, replica] : replicas)
    core().checkpoints.found(facts.name, dataset, replica);
  shared_.cards.joined(facts.name, params.getInfo(), params.getNode());
  auto results = context.getResults();
  results.setSession(kj::heap<NodeSession>(shared_.loop, core(), shared_.cards, link, ticket));
  results.setLeaseMs(static_cast<uint32_t>(core().state.settings.lease_ms));
  write_program(own, results.initProgram());
  core().dispatcher.pump();
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::datasetAdd(DatasetAddContext context) {
  allow_change(Role::kSubmit, fmt::format("add dataset '{}'", text(context.getParams().getName())));
  const auto params = context.getParams();
  auto source = value_or_throw(read_source(params.getSource()));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  core().datasets.add(
      text(params.getRequestId()), text(params.getName()), source, text(params.getNode()),
      [this, context, fulfiller](Result<Dataset> made) mutable {
        if (!made) return (*fulfiller)->reject(to_exception(made.error()));
        if (const auto* entry = core().state.catalog.find(made->name))
          write_dataset(*entry, context.getResults().initDataset());
        (*fulfiller)->fulfill();
      },
      params.getReplicas());
  return kj::mv(paf.promise);
}

kj::Promise<void> ClusterService::datasetList(DatasetListContext context) {
  allow_reading();
  const auto params = context.getParams();
  const uint32_t limit = params.getLimit() ? std::min(params.getLimit(), kPage) : kPage;
  const auto& all = core().state.catalog.all();
  std::vector<const Catalog::Entry*> page;
  size_t bytes = 0;
  for (auto it = all.upper_bound(text(params.getAfter()));
       it != all.end() && page.size() < limit && bytes < kPageBytes; ++it) {
    page.push_back(&it->second);
    bytes += wire_size(it->second);
  }
  auto out = context.getResults().initDatasets(static_cast<unsigned>(page.size()));
  for (unsigned i = 0; i < out.size(); ++i) write_dataset(*page[i], out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::datasetShow(DatasetShowContext context) {
  allow_reading();
  const auto name = text(context.getParams().getName());
  const auto* entry = core().state.catalog.find(name);
  if (!entry) refuse(ErrorCode::kNotFound, fmt::format("dataset '{}' does not exist", name));
  write_dataset(*entry, context.getResults().initDataset());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::datasetCheck(DatasetCheckContext context) {
  const auto checked = context.getParams();
  allow_change(checked.getRepair() ? Role::kOperate : Role::kSubmit,
               fmt::format("{} dataset '{}'", checked.getRepair() ? "repair" : "verify",
                           text(checked.getName())));
  const auto params = context.getParams();
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  if (params.getRepair()) core().replicator.hurry(text(params.getName()));
  core().checker.check(text(params.getName()), params.getRepair(),
                       [context, fulfiller](Result<DatasetCheck> check) mutable {
                         if (!check) return (*fulfiller)->reject(to_exception(check.error()));
                         write_check(*check, context.getResults().initCheck());
                         (*fulfiller)->fulfill();
                       });
  return kj::mv(paf.promise);
}

kj::Promise<void> ClusterService::datasetRemove(DatasetRemoveContext context) {
  allow_change(Role::kOperate,
               fmt::format("remove dataset '{}'", text(context.getParams().getName())));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  core().datasets.remove(text(context.getParams().getName()), [fulfiller](Status status) {
    if (status)
      (*fulfiller)->fulfill();
    else
      (*fulfiller)->reject(to_exception(status.error()));
  });
  return kj::mv(paf.promise);
}

Role ClusterService::role() const {
  if (role_version_ != shared_.access_version) {
    role_ = shared_.access.role_of(peer_);
    role_version_ = shared_.access_version;
  }
  return role_;
}

void ClusterService::allow_reading() const {
  value_or_throw(check_role(who_, role(), Role::kRead, "look at the cluster"));
}

void ClusterService::allow_submit() const {
  const auto allowed = check_role(who_, role(), Role::kSubmit, "submit tasks");
  if (!allowed) record("submit tasks", false);
  value_or_throw(allowed);
}

void ClusterService::allow_change(Role needed, const std::string& what) const {
  const auto allowed = check_role(who_, role(), needed, what);
  record(what, allowed.has_value());
  value_or_throw(allowed);
}

void ClusterService::record(const std::string& what, bool allowed) const {
  audit(fmt::format("{}: {}{}", caller(), what,
                    allowed ? "" : ": refused, its role does not allow it"));
}

void ClusterService::allow_change_of(const Task& task, const std::string& what) const {
  allow_change(task.user == peer_.name ? Role::kSubmit : Role::kOperate, what);
}

kj::Promise<void> ClusterService::backup(BackupContext context) {
  // It has everybody's tasks: no role gives it to another machine.
  const bool own_machine = peer_.uid && (*peer_.uid == 0 || *peer_.uid == ::geteuid());
  allow_change(Role::kOperate, "take a backup");
  if (!own_machine)
    refuse(ErrorCode::kDenied,
           "a backup has everybody's tasks: only root and the coordinator's "
           "user get one, on its machine");
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  shared_.backups.make([context, fulfiller](Result<UniqueFd> made) mutable {
    if (!made) return (*fulfiller)->reject(to_exception(made.error()));
    context.getResults().setBackup(kj::heap<BackupReader>(std::move(*made)));
    (*fulfiller)->fulfill();
  });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
