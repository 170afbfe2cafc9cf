#include "coordinator/service/cluster_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/service/node_session.h"
#include "coordinator/service/rpc_node_link.h"
#include "coordinator/service/wire.h"
#include "policies/dqn/token_net.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kPage = 500;

[[noreturn]] void refuse(ErrorCode code, std::string message) {
  kj::throwFatalException(to_exception({code, std::move(message)}));
}

using ShownSettings = std::vector<std::pair<const char*, double>>;

ShownSettings shown(const DqnSettings& dqn) {
  return {{"width", static_cast<double>(TokenNet::kWidth)},
          {"features", static_cast<double>(kTokenSize)},
          {"gamma", dqn.gamma},
          {"learning_rate", dqn.learning_rate},
          {"train_start", static_cast<double>(dqn.train_start)},
          {"batch", static_cast<double>(dqn.batch)},
          {"copy_interval", static_cast<double>(dqn.copy_interval)}};
}

ShownSettings shown(const PublishedSettings& dqn) {
  return {{"width", static_cast<double>(dqn.network.width)},
          {"layers", static_cast<double>(dqn.network.layers)},
          {"heads", static_cast<double>(dqn.network.heads)},
          {"feed_forward", static_cast<double>(dqn.network.feed_forward)},
          {"dropout", dqn.network.dropout},
          {"gamma", dqn.gamma},
          {"learning_rate", dqn.learning_rate},
          {"train_start", static_cast<double>(dqn.train_start)},
          {"batch", static_cast<double>(dqn.batch)},
          {"batches_per_step", static_cast<double>(dqn.batches_per_step)},
          {"copy_interval", static_cast<double>(dqn.copy_interval)}};
}

void write_settings(const ShownSettings& settings, wire::LearnerState::Builder out) {
  auto list = out.initSettings(static_cast<unsigned>(settings.size()));
  unsigned i = 0;
  for (const auto& [name, value] : settings) {
    list[i].setName(name);
    list[i++].initValue().setValue(value);
  }
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
  out.setRunning(state.tasks.running());
  out.setBusyUnitMs(static_cast<uint64_t>(state.scores.busy_unit_ms(now_ns)));
  out.setCapacityUnitMs(static_cast<uint64_t>(state.scores.capacity_unit_ms(now_ns)));
  uint64_t fallbacks = 0;
  for (const auto& [name, score] : state.scores.policies()) fallbacks += score.fallbacks;
  out.setFallbacks(fallbacks);
  out.setRejectedFrames(shared_.rejected_frames());
  out.setNowMs(state.clock.wall_ms());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::registerNode(RegisterNodeContext context) {
  const auto params = context.getParams();
  const auto facts = read_facts(params.getInfo());
  // Between machines a node is who its certificate says it is.
  if (peer_.transport == "tls" && peer_.name != facts.name)
    refuse(ErrorCode::kDenied,
           fmt::format("node '{}': its certificate is made out to '{}'", facts.name, peer_.name));
  std::vector<std::pair<std::string, ReplicaState>> replicas;
  for (const auto replica : params.getReplicas())
    replicas.emplace_back(text(replica.getDataset()), read_replica(replica));
  std::set<AttemptId> live;
  for (const auto attempt : params.getLive()) live.insert(read_attempt(attempt));
  auto link = std::make_shared<RpcNodeLink>(shared_.loop, facts.name, params.getNode());
  auto ticket = value_or_throw(core().membership.join(facts, std::move(link), replicas, live));
  shared_.cards.joined(facts.name, params.getInfo(), params.getNode());
  auto results = context.getResults();
  results.setSession(kj::heap<NodeSession>(shared_.loop, core(), shared_.cards, ticket));
  results.setLeaseMs(static_cast<uint32_t>(core().state.settings.lease_ms));
  core().dispatcher.pump();
  return kj::READY_NOW;
}

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
  out.setTasksRunning(static_cast<uint32_t>(node.held.size()));
  out.setTasksDone(node.tasks_done);
  out.setDatasets(core().state.catalog.count_on(name));
  if (node.life == NodeLife::kUp && !node.link)
    out.setReason("not connected");
  else if (node.life == NodeLife::kLost)
    out.setReason("its lease ended without a word from it");
  else if (node.life == NodeLife::kExpected)
    out.setReason("tasks were left on it; it has not come back yet");
}

kj::Promise<void> ClusterService::nodeList(NodeListContext context) {
  const auto& nodes = core().state.registry.all();
  auto out = context.getResults().initNodes(static_cast<unsigned>(nodes.size()));
  unsigned i = 0;
  for (const auto& [name, node] : nodes) write_node(node, out[i++]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::nodeShow(NodeShowContext context) {
  const auto name = text(context.getParams().getName());
  const auto* node = core().state.registry.find(name);
  if (!node) refuse(ErrorCode::kNotFound, fmt::format("node '{}' does not exist", name));
  write_node(*node, context.getResults().initNode());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::datasetAdd(DatasetAddContext context) {
  const auto params = context.getParams();
  auto source = value_or_throw(read_source(params.getSource()));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  core().datasets.add(text(params.getRequestId()), text(params.getName()), source,
                      text(params.getNode()),
                      [this, context, fulfiller](Result<Dataset> made) mutable {
                        if (!made) return (*fulfiller)->reject(to_exception(made.error()));
                        if (const auto* entry = core().state.catalog.find(made->name))
                          write_dataset(*entry, context.getResults().initDataset());
                        (*fulfiller)->fulfill();
                      });
  return kj::mv(paf.promise);
}

kj::Promise<void> ClusterService::datasetList(DatasetListContext context) {
  const auto params = context.getParams();
  const uint32_t limit = params.getLimit() ? std::min(params.getLimit(), kPage) : kPage;
  const auto& all = core().state.catalog.all();
  std::vector<const Catalog::Entry*> page;
  for (auto it = all.upper_bound(text(params.getAfter())); it != all.end() && page.size() < limit;
       ++it)
    page.push_back(&it->second);
  auto out = context.getResults().initDatasets(static_cast<unsigned>(page.size()));
  for (unsigned i = 0; i < out.size(); ++i) write_dataset(*page[i], out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::datasetShow(DatasetShowContext context) {
  const auto name = text(context.getParams().getName());
  const auto* entry = core().state.catalog.find(name);
  if (!entry) refuse(ErrorCode::kNotFound, fmt::format("dataset '{}' does not exist", name));
  write_dataset(*entry, context.getResults().initDataset());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::datasetRemove(DatasetRemoveContext context) {
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

void ClusterService::write_policy(const PolicyInfo& policy, wire::PolicyEntry::Builder out) {
  write_score(core().state.scores.of(policy.name), out);
  out.setName(policy.name);
  out.setDescription(policy.summary);
  out.setActive(policy.name == core().host.active());
  out.setLearns(policy.learns);
}

PolicyInfo ClusterService::policy_named(const std::string& name) {
  for (const auto& policy : core().host.list())
    if (policy.name == name) return policy;
  refuse(ErrorCode::kNotFound, fmt::format("policy '{}' does not exist", name));
}

kj::Promise<void> ClusterService::policyList(PolicyListContext context) {
  const auto policies = core().host.list();
  auto out = context.getResults().initPolicies(static_cast<unsigned>(policies.size()));
  for (unsigned i = 0; i < out.size(); ++i) write_policy(policies[i], out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::policyShow(PolicyShowContext context) {
  const auto policy = policy_named(text(context.getParams().getName()));
  auto results = context.getResults();
  write_policy(policy, results.initPolicy());
  if (!policy.learns) return kj::READY_NOW;
  const auto learner = core().host.learner(policy.name);
  auto out = results.initLearner();
  out.setExperiences(learner.experiences);
  out.setReplaySize(learner.replay_size);
  out.setReplayCapacity(learner.replay_capacity);
  out.setTrainingSteps(learner.training_steps);
  write_figure(
      learner.batches > 0 ? Figure{learner.loss, {}} : Figure{std::nullopt, "not trained yet"},
      out.initLoss());
  out.setWeightsVersion(learner.weights_version);
  out.setEpsilon(learner.epsilon);
  out.setPending(learner.pending);
  write_settings(policy.name == "dqn" ? shown(core().dqn) : shown(core().dqn_published), out);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::policyUse(PolicyUseContext context) {
  const auto policy = policy_named(text(context.getParams().getName()));
  value_or_throw(core().host.use(policy.name));
  spdlog::info("policy '{}' decides from now on (asked by {})", policy.name, peer_.name);
  write_policy(policy, context.getResults().initPolicy());
  return kj::READY_NOW;
}

}  // namespace tierpilot
