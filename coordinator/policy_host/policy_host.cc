#include "coordinator/policy_host/policy_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/log.h"
#include "coordinator/policy_host/saved_learner.h"
#include "coordinator/policy_host/training_thread.h"

namespace tierpilot {

struct PolicyHost::Parts {
  PolicyHostOptions options;
  std::map<std::string, std::string> notes;  // by policy
  OpenRequests open;
  std::unique_ptr<TrainingThread> training;
  std::unique_ptr<DecisionThread> decisions;  // ends before what it uses
};

namespace {

Result<size_t> index_of(const PlacementModules& modules, std::string_view name) {
  const auto module = modules.get(name);
  if (!module) return tl::unexpected(module.error());
  return static_cast<size_t>(*module - &*modules.begin());
}

struct Players {
  DecisionThread::SharedPolicies policies;
  std::vector<TrainingThread::NamedLearner> learners;
  std::map<std::string, std::string> notes;  // by policy
};

// Each learner as its checkpoint or its weights say.
Status add_learning(const PlacementModule& module, const PolicyHostOptions& options,
                    Players& players) {
  const std::string& name = module.info.name;
  auto started = module.learning->start(options.seed, options.pending_capacity);
  if (!started) return tl::unexpected(started.error());
  const bool awake = module.learning->traits().learns_always || name == options.active;
  Result<TakenOver> taken;
  try {
    if (awake) started->learner->begin();
    taken = take_over_learner(options.state_dir, name, started->begins_from, *started->learner);
  } catch (const std::runtime_error& error) {
    return fail(ErrorCode::kUnavailable, fmt::format("policy '{}': {}", name, error.what()));
  }
  if (!taken) return tl::unexpected(taken.error());
  players.notes[name] = taken->note;
  players.learners.push_back({name, std::move(started->learner), awake, taken->origin});
  players.policies.push_back(
      std::make_unique<SharedPolicy>(name, std::move(started->policy), false));
  return {};
}

Result<Players> make_players(const PolicyHostOptions& options) {
  Players players;
  for (const PlacementModule& module : options.modules) {
    if (module.learning) {
      if (Status added = add_learning(module, options, players); !added)
        return tl::unexpected(added.error());
      continue;
    }
    auto policy = module.make(options.seed);
    if (!policy) return tl::unexpected(policy.error());
    players.policies.push_back(
        std::make_unique<SharedPolicy>(module.info.name, std::move(*policy), true));
  }
  return players;
}

}  // namespace

Result<std::unique_ptr<PolicyHost>> PolicyHost::start(PolicyHostOptions options) {
  for (const PlacementModule& module : options.modules)
    if (module.learning)
      if (Status valid = module.learning->check(); !valid) return tl::unexpected(valid.error());
  const auto active = index_of(options.modules, options.active);
  if (!active) return tl::unexpected(active.error());
  auto parts = std::make_unique<Parts>();
  parts->options = std::move(options);
  const PolicyHostOptions& given = parts->options;
  auto players = make_players(given);
  if (!players) return tl::unexpected(players.error());
  parts->notes = std::move(players->notes);
  VersionArchive archive(given.state_dir, given.versions_kept);
  for (const auto& learner : players->learners)
    if (Status opened = archive.open(learner.policy); !opened)
      return tl::unexpected(opened.error());
  parts->training = std::make_unique<TrainingThread>(std::move(players->learners), given.state_dir,
                                                     given.pace, std::move(archive));
  parts->decisions = std::make_unique<DecisionThread>(
      std::move(players->policies), *active, parts->open, *parts->training,
      std::chrono::milliseconds(given.save_interval_ms), !given.state_dir.empty());
  return std::unique_ptr<PolicyHost>(new PolicyHost(std::move(parts)));
}

PolicyHost::PolicyHost(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

PolicyHost::~PolicyHost() {
  parts_->decisions.reset();
  // A failure is in the log.
  if (!parts_->options.state_dir.empty()) (void)save();
}

void PolicyHost::decide(uint64_t request, std::shared_ptr<const View> view,
                        std::function<void(Decided)> done) {
  parts_->open.add(request);
  parts_->decisions->submit(
      {request, std::move(view), std::move(done), std::chrono::steady_clock::now()});
}

void PolicyHost::dismiss(uint64_t request) {
  parts_->open.close(request);
}

std::optional<Decided> PolicyHost::decide_at_once(uint64_t request, const View& view) {
  return parts_->decisions->decide_at_once(request, view);
}

void PolicyHost::took(uint64_t id, std::shared_ptr<const View> view, size_t node) {
  parts_->training->decided(id, std::move(view), node);
}

void PolicyHost::told(uint64_t id, const Outcome& outcome) {
  if (const auto* served = std::get_if<DataServed>(&outcome);
      served && !std::isfinite(served->reward.reward))
    return;
  parts_->training->told(id, outcome);
}

Status PolicyHost::use(std::string_view name) {
  const auto index = index_of(modules(), name);
  if (!index) return tl::unexpected(index.error());
  parts_->training->wake(modules()[*index].info.name);
  parts_->decisions->use(*index);
  return {};
}

std::string PolicyHost::active() const {
  return modules()[parts_->decisions->active()].info.name;
}

const PlacementModules& PolicyHost::modules() const {
  return parts_->options.modules;
}

LearnerState PolicyHost::learner(const std::string& policy) const {
  const auto status = parts_->training->status(policy);
  LearnerState state{status.counters, 0, status.versions, status.origin, ""};
  if (const auto* module = modules().find(policy); module && module->learning)
    state.epsilon = module->learning->epsilon();
  const auto note = parts_->notes.find(policy);
  if (note != parts_->notes.end()) state.note = note->second;
  if (status.failed) state.note = "training stopped after an error, see the log";
  return state;
}

bool PolicyHost::keeps_versions() const {
  return !parts_->options.state_dir.empty() && parts_->options.versions_kept > 0;
}

void PolicyHost::keep_version(const std::string& policy, WeightsVersion about,
                              TrainingThread::VersionDone done) {
  parts_->training->keep_version(policy, std::move(about), std::move(done));
}

void PolicyHost::roll_back(const std::string& policy, uint64_t number, WeightsVersion about,
                           TrainingThread::VersionDone done) {
  parts_->training->roll_back(policy, number, std::move(about), std::move(done));
}

Status PolicyHost::save() {
  auto done = std::make_shared<std::promise<Status>>();
  auto saved = done->get_future();
  parts_->training->save(std::move(done));
  return saved.get();
}

}  // namespace tierpilot
