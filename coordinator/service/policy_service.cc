#include "coordinator/service/policy_service.h"

#include <fmt/format.h>

#include "base/log.h"
#include "coordinator/service/policy_wire.h"
#include "coordinator/service/wire.h"
#include "policies/gang/learned/hosted_placers.h"
#include "policies/quality/allocator.h"
#include "policies/sharing/live/share_policy.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kShownEvents = 20;

void write_settings(const ShownSettings& settings, wire::LearnerState::Builder out) {
  auto list = out.initSettings(static_cast<unsigned>(settings.size()));
  unsigned i = 0;
  for (const auto& [name, value] : settings) {
    list[i].setName(name);
    list[i++].initValue().setValue(value);
  }
}

struct Choice {
  const char* decides;
  PolicyInfo info;
  bool active = false;
};

std::vector<Choice> other_choices(const CoreSettings& settings) {
  std::vector<Choice> choices;
  const auto add = [&](const char* decides, const auto& modules, const std::string& active) {
    for (const auto& module : modules)
      choices.push_back({decides, module.info, module.info.name == active});
  };
  add("units of gangs", gang::hosted_placers(), settings.gang_policy);
  add("cores of jobs", quality::allocators(), settings.elastic_allocator);
  add("shares of units", sharing::share_policies(), settings.share_policy);
  return choices;
}

}  // namespace

void PolicyService::write_policy(const PlacementModule& policy,
                                 wire::PolicyEntry::Builder out) const {
  const std::string& name = policy.info.name;
  write_score(caller_->core().state.scores.of(name), out);
  out.setName(name);
  out.setDescription(policy.info.summary);
  out.setActive(name == caller_->core().host.active());
  out.setLearns(policy.learning != nullptr);
  out.setShare(1);
  if (const auto* guard = caller_->core().oversight.guard(name)) write_standing(*guard, out);
}

const PlacementModule& PolicyService::policy_named(const std::string& name) const {
  if (const auto* module = caller_->core().host.modules().find(name)) return *module;
  for (const auto& other : other_choices(caller_->core().state.settings))
    if (other.info.name == name)
      refuse(ErrorCode::kNotFound,
             fmt::format("policy '{}' decides {}, not where tasks run: 'tierctl policy list' has "
                         "its line, and the coordinator's configuration says which one is used",
                         name, other.decides));
  refuse(ErrorCode::kNotFound, fmt::format("policy '{}' does not exist", name));
}

kj::Promise<void> PolicyService::policyList(PolicyListContext context) {
  caller_->allow_reading();
  const auto& policies = caller_->core().host.modules();
  auto results = context.getResults();
  auto out = results.initPolicies(static_cast<unsigned>(policies.size()));
  for (unsigned i = 0; i < out.size(); ++i) write_policy(policies[i], out[i]);
  const auto choices = other_choices(caller_->core().state.settings);
  auto others = results.initOthers(static_cast<unsigned>(choices.size()));
  for (unsigned i = 0; i < others.size(); ++i) {
    others[i].setDecides(choices[i].decides);
    others[i].setName(choices[i].info.name);
    others[i].setDescription(choices[i].info.summary);
    others[i].setActive(choices[i].active);
  }
  return kj::READY_NOW;
}

kj::Promise<void> PolicyService::policyShow(PolicyShowContext context) {
  caller_->allow_reading();
  const auto& policy = policy_named(text(context.getParams().getName()));
  auto results = context.getResults();
  write_policy(policy, results.initPolicy());
  if (!policy.learning) return kj::READY_NOW;
  const auto learner = caller_->core().host.learner(policy.info.name);
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
  write_settings(policy.learning->settings(), out);

  auto& oversight = caller_->core().oversight;
  write_guard(oversight.settings().guard.on, oversight.tally(policy.info.name),
              results.initGuard());
  auto versions = results.initVersions(static_cast<unsigned>(learner.versions.size()));
  for (unsigned i = 0; i < versions.size(); ++i) write_version(learner.versions[i], versions[i]);
  const auto events = value_or_throw(oversight.events(policy.info.name, kShownEvents));
  auto listed = results.initEvents(static_cast<unsigned>(events.size()));
  for (unsigned i = 0; i < listed.size(); ++i) write_event(events[i], listed[i]);
  return kj::READY_NOW;
}

kj::Promise<void> PolicyService::policyUse(PolicyUseContext context) {
  const auto& policy = policy_named(text(context.getParams().getName()));
  caller_->allow_change(Role::kOperate, fmt::format("let policy '{}' decide", policy.info.name));
  value_or_throw(caller_->core().host.use(policy.info.name));
  caller_->core().dispatcher.pump();  // what the one before kept back
  write_policy(policy, context.getResults().initPolicy());
  return kj::READY_NOW;
}

kj::Promise<void> PolicyService::policyMode(PolicyModeContext context) {
  const auto params = context.getParams();
  const auto& policy = policy_named(text(params.getName()));
  const auto name = text(params.getMode());
  const auto mode = parse_policy_mode(name);
  if (!mode)
    refuse(ErrorCode::kInvalid,
           fmt::format("'{}' is not a mode: use shadow, advise or enforce", name));
  caller_->allow_change(Role::kOperate,
                        fmt::format("set policy '{}' to mode '{}'", policy.info.name, name));
  value_or_throw(caller_->core().oversight.set_mode(policy.info.name, *mode));
  caller_->core().dispatcher.pump();  // what was kept back is asked about again
  write_policy(policy, context.getResults().initPolicy());
  return kj::READY_NOW;
}

kj::Promise<void> PolicyService::policyRollback(PolicyRollbackContext context) {
  const auto params = context.getParams();
  const auto& policy = policy_named(text(params.getName()));
  if (!policy.learning)
    refuse(ErrorCode::kInvalid,
           fmt::format("policy '{}' does not learn: it has no versions", policy.info.name));
  caller_->allow_change(Role::kOperate, fmt::format("roll policy '{}' back to version {}",
                                                    policy.info.name, params.getVersion()));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().roll_back(policy.info.name, params.getVersion(), caller_->peer().name,
                            [context, fulfiller](Result<WeightsVersion> version) mutable {
                              if (!version)
                                return (*fulfiller)->reject(to_exception(version.error()));
                              write_version(*version, context.getResults().initVersion());
                              (*fulfiller)->fulfill();
                            });
  return kj::mv(paf.promise);
}

kj::Promise<void> PolicyService::policyCompare(PolicyCompareContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  auto first = text(params.getFirst());
  const auto second = text(params.getSecond());
  if (first.empty()) first = caller_->core().host.active();
  policy_named(first);
  auto results = context.getResults();
  auto& oversight = caller_->core().oversight;
  results.setConcurrent(second.empty());
  const auto& measures = oversight.settings().measures;
  auto out = results.initComparisons(static_cast<unsigned>(measures.size()));
  if (!second.empty()) {
    policy_named(second);
    const auto of_first = oversight.measured(first);
    const auto of_second = oversight.measured(second);
    for (unsigned i = 0; i < out.size(); ++i)
      write_comparison(measures[i], {first, of_first[i]}, {second, of_second[i]}, out[i]);
    return kj::READY_NOW;
  }
  const auto* guard = oversight.guard(first);
  if (!guard)
    refuse(ErrorCode::kInvalid,
           fmt::format("policy '{}' does not learn, so that no control decisions are taken beside "
                       "it: name a second policy",
                       first));
  for (unsigned i = 0; i < out.size(); ++i) {
    const auto& comparison = guard->comparison(i);
    write_comparison(measures[i], {first, comparison.policy()}, {"heuristic", comparison.control()},
                     out[i]);
    out[i].setJudged(guard->judged() == i);
  }
  return kj::READY_NOW;
}

}  // namespace tierpilot
