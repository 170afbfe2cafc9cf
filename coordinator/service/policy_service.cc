#include "coordinator/service/policy_service.h"

#include <fmt/format.h>

#include "base/log.h"
#include "coordinator/service/policy_wire.h"
#include "coordinator/service/wire.h"
#include "policies/quality/allocator.h"
#include "policies/sharing/live/share_policy.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kPolicyEvents = 20;
constexpr const char* kOfGangs = "units of gangs";

void write_settings(const ShownSettings& settings, wire::LearnerState::Builder out) {
  auto list = out.initSettings(count(settings));
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
  const Guard* guard = nullptr;  // null: it has none
};

// Those that the configuration alone chooses.
std::vector<Choice> fixed_choices(const CoreSettings& settings) {
  std::vector<Choice> choices;
  const auto add = [&](const char* decides, const auto& modules, const std::string& active) {
    for (const auto& module : modules)
      choices.push_back({decides, module.info, module.info.name == active});
  };
  add("cores of jobs", quality::allocators(), settings.elastic_allocator);
  add("shares of units", sharing::share_policies(), settings.share_policy);
  return choices;
}

std::vector<Choice> gang_choices(const GangPolicies& policies) {
  std::vector<Choice> choices;
  for (const auto& module : policies.modules())
    choices.push_back({kOfGangs, module.info, module.info.name == policies.active(),
                       policies.oversight().guard(GangPolicies::full_name(module.info.name))});
  return choices;
}

}  // namespace

const char* PolicyService::Known::decides() const {
  return of_tasks ? "where tasks run" : kOfGangs;
}

std::string PolicyService::Known::full_name() const {
  return of_tasks ? of_tasks->info.name : GangPolicies::full_name(of_gangs->info.name);
}

Oversight& PolicyService::oversight_of(const Known& policy) const {
  auto& core = caller_->core();
  return policy.of_tasks ? core.oversight : core.gangs.policies().oversight();
}

bool PolicyService::is_active(const Known& policy) const {
  auto& core = caller_->core();
  return policy.info().name ==
         (policy.of_tasks ? core.host.active() : core.gangs.policies().active());
}

void PolicyService::write_policy(const Known& policy, wire::PolicyEntry::Builder out) const {
  write_score(caller_->core().state.scores.of(policy.full_name()), out);
  out.setName(policy.info().name);
  out.setDescription(policy.info().summary);
  out.setDecides(policy.decides());
  out.setActive(is_active(policy));
  out.setLearns(policy.learns());
  out.setShare(1);
  if (const auto* guard = oversight_of(policy).guard(policy.full_name()))
    write_standing(*guard, out);
}

PolicyService::Known PolicyService::policy_named(const std::string& name) const {
  const auto& core = caller_->core();
  if (const auto* module = core.host.modules().find(name)) return {module, nullptr};
  for (const auto& module : core.state.settings.gang_policies->names())
    if (name == module || name == GangPolicies::full_name(module))
      return {nullptr, core.state.settings.gang_policies->find(module)};
  for (const auto& other : fixed_choices(core.state.settings))
    if (other.info.name == name)
      refuse(ErrorCode::kNotFound,
             fmt::format("policy '{}' decides {}, not where tasks or gangs run: 'tierctl policy "
                         "list' has its line, and the coordinator's configuration says which one "
                         "is used",
                         name, other.decides));
  refuse(ErrorCode::kNotFound, fmt::format("policy '{}' does not exist", name));
}

kj::Promise<void> PolicyService::policyList(PolicyListContext context) {
  caller_->allow_reading();
  auto& core = caller_->core();
  const auto& policies = core.host.modules();
  auto results = context.getResults();
  auto out = results.initPolicies(count(policies));
  for (unsigned i = 0; i < out.size(); ++i) write_policy({&policies[i], nullptr}, out[i]);
  auto choices = gang_choices(core.gangs.policies());
  for (auto& choice : fixed_choices(core.state.settings)) choices.push_back(std::move(choice));
  auto others = results.initOthers(count(choices));
  for (unsigned i = 0; i < others.size(); ++i) {
    others[i].setDecides(choices[i].decides);
    others[i].setName(choices[i].info.name);
    others[i].setDescription(choices[i].info.summary);
    others[i].setActive(choices[i].active);
    if (!choices[i].guard) continue;
    others[i].setMode(policy_mode_name(choices[i].guard->memory().mode));
    others[i].setStanding(standing_name(choices[i].guard->memory().standing));
  }
  return kj::READY_NOW;
}

void PolicyService::write_learner(const PlacementModule& policy, PolicyShowContext& context) const {
  auto results = context.getResults();
  const auto learner = caller_->core().host.learner(policy.info.name);
  auto out = results.initLearner();
  out.setExperiences(learner.experiences);
  out.setReplaySize(learner.replay_size);
  out.setReplayCapacity(learner.replay_capacity);
  out.setTrainingSteps(learner.training_steps);
  const auto none = learner.note.empty() ? "" : ": " + learner.note;
  write_figure(learner.batches > 0 ? Figure{learner.loss, {}}
                                   : Figure{std::nullopt, "not trained yet" + none},
               out.initLoss());
  out.setWeightsVersion(learner.weights_version);
  out.setEpsilon(learner.epsilon);
  out.setPending(learner.pending);
  out.setOrigin(learner.origin);
  out.setNote(learner.note);
  write_settings(policy.learning->settings(), out);
  auto versions = results.initVersions(count(learner.versions));
  for (unsigned i = 0; i < versions.size(); ++i) write_version(learner.versions[i], versions[i]);
}

kj::Promise<void> PolicyService::policyShow(PolicyShowContext context) {
  caller_->allow_reading();
  const auto policy = policy_named(text(context.getParams().getName()));
  auto results = context.getResults();
  write_policy(policy, results.initPolicy());
  if (!policy.learns()) return kj::READY_NOW;
  if (policy.of_tasks) write_learner(*policy.of_tasks, context);
  auto& oversight = oversight_of(policy);
  write_guard(oversight.settings().guard.on, oversight.tally(policy.full_name()),
              results.initGuard());
  const auto events = value_or_throw(oversight.events(policy.full_name(), kPolicyEvents));
  auto listed = results.initEvents(count(events));
  for (unsigned i = 0; i < listed.size(); ++i) write_event(events[i], listed[i]);
  return kj::READY_NOW;
}

kj::Promise<void> PolicyService::policyUse(PolicyUseContext context) {
  const auto policy = policy_named(text(context.getParams().getName()));
  const auto& name = policy.info().name;
  caller_->allow_change(Role::kOperate,
                        fmt::format("let policy '{}' decide {}", name, policy.decides()));
  auto& core = caller_->core();
  value_or_throw(policy.of_tasks ? core.host.use(name) : core.gangs.policies().use(name));
  core.dispatcher.pump();  // what the one before kept back
  write_policy(policy, context.getResults().initPolicy());
  return kj::READY_NOW;
}

kj::Promise<void> PolicyService::policyMode(PolicyModeContext context) {
  const auto params = context.getParams();
  const auto policy = policy_named(text(params.getName()));
  const auto name = text(params.getMode());
  const auto mode = parse_policy_mode(name);
  if (!mode)
    refuse(ErrorCode::kInvalid,
           fmt::format("'{}' is not a mode: use shadow, advise or enforce", name));
  caller_->allow_change(Role::kOperate,
                        fmt::format("set policy '{}' to mode '{}'", policy.full_name(), name));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  value_or_throw(oversight_of(policy).set_mode(
      policy.full_name(), *mode, [this, policy, context, fulfiller](const Status& status) mutable {
        if (!status)
          return (*fulfiller)
              ->reject(to_exception({status.error().code,
                                     fmt::format("policy '{}': the mode is used, and not on disk "
                                                 "yet, which is tried again: {}",
                                                 policy.full_name(), status.error().message)}));
        write_policy(policy, context.getResults().initPolicy());
        (*fulfiller)->fulfill();
      }));
  caller_->core().dispatcher.pump();  // what was kept back is asked about again
  return kj::mv(paf.promise);
}

kj::Promise<void> PolicyService::policyRollback(PolicyRollbackContext context) {
  const auto params = context.getParams();
  const auto policy = policy_named(text(params.getName()));
  const auto& name = policy.info().name;
  if (!policy.of_tasks || !policy.learns())
    refuse(ErrorCode::kInvalid, fmt::format("policy '{}' does not learn{}: it has no versions",
                                            name, policy.of_tasks ? "" : " here"));
  caller_->allow_change(Role::kOperate, fmt::format("roll policy '{}' back to version {}", name,
                                                    params.getVersion()));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().roll_back(name, params.getVersion(), caller_->peer().name,
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
  const auto named = text(params.getFirst());
  const auto first = policy_named(named.empty() ? caller_->core().host.active() : named);
  auto results = context.getResults();
  auto& oversight = oversight_of(first);
  results.setConcurrent(!params.hasSecond() || params.getSecond().size() == 0);
  const auto& measures = oversight.settings().measures;
  auto out = results.initComparisons(count(measures));
  if (!results.getConcurrent()) {
    const auto second = policy_named(text(params.getSecond()));
    if (&oversight_of(second) != &oversight)
      refuse(ErrorCode::kInvalid,
             fmt::format("policy '{}' decides {} and '{}' {}: nothing of them can be compared",
                         first.info().name, first.decides(), second.info().name, second.decides()));
    const auto of_first = oversight.measured(first.full_name());
    const auto of_second = oversight.measured(second.full_name());
    for (unsigned i = 0; i < out.size(); ++i)
      write_comparison(measures[i], {first.info().name, of_first[i]},
                       {second.info().name, of_second[i]}, out[i]);
    return kj::READY_NOW;
  }
  const auto* guard = oversight.guard(first.full_name());
  if (!guard)
    refuse(ErrorCode::kInvalid,
           fmt::format("policy '{}' does not learn, so that no control decisions are taken beside "
                       "it: name a second policy",
                       first.info().name));
  for (unsigned i = 0; i < out.size(); ++i) {
    const auto& comparison = guard->comparison(i);
    write_comparison(measures[i], {first.info().name, comparison.policy()},
                     {"heuristic", comparison.control()}, out[i]);
    out[i].setJudged(guard->judged() == i);
  }
  return kj::READY_NOW;
}

}  // namespace tierpilot
