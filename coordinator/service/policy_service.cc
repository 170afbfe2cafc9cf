// The cluster's calls about policies.
#include <fmt/format.h>

#include "base/log.h"
#include "coordinator/service/cluster_service.h"
#include "coordinator/service/policy_wire.h"
#include "coordinator/service/wire.h"
#include "policies/placement/dqn/token_net.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kShownEvents = 20;

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

void ClusterService::write_policy(const PolicyInfo& policy, wire::PolicyEntry::Builder out) {
  write_score(core().state.scores.of(policy.name), out);
  out.setName(policy.name);
  out.setDescription(policy.summary);
  out.setActive(policy.name == core().host.active());
  out.setLearns(policy.learns);
  out.setShare(1);
  if (const auto* guard = core().oversight.guard(policy.name)) write_standing(*guard, out);
}

PolicyInfo ClusterService::policy_named(const std::string& name) {
  for (const auto& policy : core().host.list())
    if (policy.name == name) return policy;
  refuse(ErrorCode::kNotFound, fmt::format("policy '{}' does not exist", name));
}

kj::Promise<void> ClusterService::policyList(PolicyListContext context) {
  allow_reading();
  const auto policies = core().host.list();
  auto out = context.getResults().initPolicies(static_cast<unsigned>(policies.size()));
  for (unsigned i = 0; i < out.size(); ++i) write_policy(policies[i], out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::policyShow(PolicyShowContext context) {
  allow_reading();
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
  out.setOrigin(learner.origin);
  out.setNote(learner.note);
  write_settings(policy.name == "dqn" ? shown(core().dqn) : shown(core().dqn_published), out);

  auto& oversight = core().oversight;
  write_guard(oversight.settings().guard.on, oversight.tally(policy.name), results.initGuard());
  auto versions = results.initVersions(static_cast<unsigned>(learner.versions.size()));
  for (unsigned i = 0; i < versions.size(); ++i) write_version(learner.versions[i], versions[i]);
  const auto events = value_or_throw(oversight.events(policy.name, kShownEvents));
  auto listed = results.initEvents(static_cast<unsigned>(events.size()));
  for (unsigned i = 0; i < listed.size(); ++i) write_event(events[i], listed[i]);
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::policyUse(PolicyUseContext context) {
  const auto policy = policy_named(text(context.getParams().getName()));
  allow_change(Role::kOperate, fmt::format("let policy '{}' decide", policy.name));
  value_or_throw(core().host.use(policy.name));
  core().dispatcher.pump();  // what the one before kept back
  write_policy(policy, context.getResults().initPolicy());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::policyMode(PolicyModeContext context) {
  const auto params = context.getParams();
  const auto policy = policy_named(text(params.getName()));
  const auto name = text(params.getMode());
  const auto mode = policy_mode_from_name(name);
  if (!mode)
    refuse(ErrorCode::kInvalid,
           fmt::format("'{}' is not a mode: use shadow, advise or enforce", name));
  allow_change(Role::kOperate, fmt::format("set policy '{}' to mode '{}'", policy.name, name));
  value_or_throw(core().oversight.set_mode(policy.name, *mode));
  core().dispatcher.pump();  // what was kept back is asked about again
  write_policy(policy, context.getResults().initPolicy());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::policyRollback(PolicyRollbackContext context) {
  const auto params = context.getParams();
  const auto policy = policy_named(text(params.getName()));
  if (!policy.learns)
    refuse(ErrorCode::kInvalid,
           fmt::format("policy '{}' does not learn: it has no versions", policy.name));
  allow_change(Role::kOperate, fmt::format("roll policy '{}' back to version {}", policy.name,
                                           params.getVersion()));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  core().roll_back(policy.name, params.getVersion(), peer_.name,
                   [context, fulfiller](Result<WeightsVersion> version) mutable {
                     if (!version) return (*fulfiller)->reject(to_exception(version.error()));
                     write_version(*version, context.getResults().initVersion());
                     (*fulfiller)->fulfill();
                   });
  return kj::mv(paf.promise);
}

kj::Promise<void> ClusterService::policyCompare(PolicyCompareContext context) {
  allow_reading();
  const auto params = context.getParams();
  auto first = text(params.getFirst());
  const auto second = text(params.getSecond());
  if (first.empty()) first = core().host.active();
  policy_named(first);
  auto results = context.getResults();
  auto& oversight = core().oversight;
  results.setConcurrent(second.empty());
  auto out = results.initComparisons(kMeasures);
  if (!second.empty()) {
    policy_named(second);
    const auto of_first = oversight.measured(first);
    const auto of_second = oversight.measured(second);
    write_comparison(JudgedBy::kReward, {first, of_first.reward}, {second, of_second.reward},
                     out[0]);
    write_comparison(JudgedBy::kResponse, {first, of_first.response}, {second, of_second.response},
                     out[1]);
    return kj::READY_NOW;
  }
  const auto* guard = oversight.guard(first);
  if (!guard)
    refuse(ErrorCode::kInvalid,
           fmt::format("policy '{}' does not learn, so that no control decisions are taken beside "
                       "it: name a second policy",
                       first));
  for (unsigned i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<JudgedBy>(i);
    const auto& comparison = guard->comparison(measure);
    write_comparison(measure, {first, comparison.policy()}, {"heuristic", comparison.control()},
                     out[i]);
    out[i].setJudged(guard->judged() == measure);
  }
  return kj::READY_NOW;
}

}  // namespace tierpilot
