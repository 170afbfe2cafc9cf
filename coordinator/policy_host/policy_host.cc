#include "coordinator/policy_host/policy_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <utility>

#include "base/log.h"
#include "coordinator/policy_host/saved_learner.h"
#include "coordinator/policy_host/training_thread.h"
#include "policies/placement/dqn/weights.h"

namespace tierpilot {

struct PolicyHost::Parts {
  PolicyHostOptions options;
  std::map<std::string, std::string> notes;  // by policy
  OpenRequests open;
  std::unique_ptr<TrainingThread> training;
  std::unique_ptr<DecisionThread> decisions;  // ends before what it uses
};

namespace {

Result<size_t> index_of(std::string_view name) {
  const auto& policies = registered_policies();
  std::string known;
  for (size_t i = 0; i < policies.size(); ++i) {
    if (policies[i].name == name) return i;
    known += (known.empty() ? "" : ", ") + policies[i].name;
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("policy '{}' does not exist: there are {}", name, known));
}

Result<DecisionThread::SharedPolicies> make_policies(const PolicyContext& context) {
  DecisionThread::SharedPolicies policies;
  for (const PolicyInfo& info : registered_policies()) {
    auto policy = make_policy(info.name, context);
    if (!policy) return tl::unexpected(policy.error());
    const bool trusted = !info.learns;
    policies.push_back(std::make_unique<SharedPolicy>(info.name, std::move(*policy), trusted));
  }
  return policies;
}

constexpr const char* kDqn = "dqn";  // its learner is always awake
const std::string kNoWeights = "no weights";

std::string described(const std::filesystem::path& file, const Provenance& from) {
  return fmt::format("{}, made by '{}' of Tierpilot {} with seed {}, digest of its settings {}",
                     file.filename().string(), from.command, from.program_version, from.seed,
                     from.config_digest);
}

// The learners, each as its checkpoint or its shipped weights say.
Result<std::vector<TrainingThread::NamedLearner>> make_learners(
    const PolicyContext& context, const PolicyHostOptions& options,
    const std::string& dqn_begins_from, std::map<std::string, std::string>& notes) {
  std::vector<TrainingThread::NamedLearner> learners;
  for (const PolicyInfo& info : registered_policies()) {
    if (!info.learns) continue;
    auto learner = make_learner(info.name, context, options.pending_capacity);
    if (!learner) return tl::unexpected(learner.error());
    const auto taken = take_over_learner(
        options.state_dir, info.name, info.name == kDqn ? dqn_begins_from : kNoWeights, **learner);
    if (!taken) return tl::unexpected(taken.error());
    notes[info.name] = taken->note;
    const bool awake = info.name == kDqn || info.name == options.active;
    learners.push_back({info.name, std::move(*learner), awake, taken->origin});
  }
  return learners;
}

TrainingThread::Pace pace_of(const DqnSettings& dqn) {
  return {dqn.training_nice, dqn.training_when_idle, dqn.training_cpu_share,
          dqn.training_decisions_per_s};
}

}  // namespace

Result<std::unique_ptr<PolicyHost>> PolicyHost::start(PolicyHostOptions options) {
  if (Status valid = validate(options.dqn); !valid) return tl::unexpected(valid.error());
  if (Status valid = validate(options.published); !valid) return tl::unexpected(valid.error());
  const auto active = index_of(options.active);
  if (!active) return tl::unexpected(active.error());
  auto parts = std::make_unique<Parts>();
  parts->options = std::move(options);
  const PolicyHostOptions& given = parts->options;

  PolicyContext context{given.seed, given.dqn, given.published,
                        std::make_shared<Mailbox<DqnWeights>>(),
                        std::make_shared<Mailbox<PublishedWeights>>()};
  std::string dqn_begins_from = kNoWeights;
  if (!given.dqn.weights.empty()) {
    auto file = load_weights(given.dqn.weights);
    if (!file) return tl::unexpected(file.error());
    if (file->features != given.dqn.features)
      return fail(
          ErrorCode::kInvalid,
          fmt::format("weights {}: they learned from other feature groups than dqn.leave_out "
                      "says: train them anew, or change it",
                      given.dqn.weights.string()));
    dqn_begins_from = described(given.dqn.weights, file->provenance);
    context.start = std::make_shared<const DqnWeights>(std::move(file->weights));
  }
  auto learners = make_learners(context, given, dqn_begins_from, parts->notes);
  if (!learners) return tl::unexpected(learners.error());
  auto policies = make_policies(context);
  if (!policies) return tl::unexpected(policies.error());
  VersionArchive archive(given.state_dir, given.versions_kept);
  for (const auto& learner : *learners)
    if (Status opened = archive.open(learner.policy); !opened)
      return tl::unexpected(opened.error());
  parts->training = std::make_unique<TrainingThread>(std::move(*learners), given.state_dir,
                                                     pace_of(given.dqn), std::move(archive));
  parts->decisions = std::make_unique<DecisionThread>(
      std::move(*policies), *active, given.published.features(), parts->open, *parts->training,
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

void PolicyHost::outcome(uint64_t id, const RewardParts& reward) {
  if (std::isfinite(reward.reward)) parts_->training->served(id, reward);
}

void PolicyHost::finished(uint64_t id, double response_s) {
  parts_->training->finished(id, response_s);
}

void PolicyHost::abandon(uint64_t id) {
  parts_->training->abandoned(id);
}

Status PolicyHost::use(std::string_view name) {
  const auto index = index_of(name);
  if (!index) return tl::unexpected(index.error());
  parts_->training->wake(registered_policies()[*index].name);
  parts_->decisions->use(*index);
  return {};
}

std::string PolicyHost::active() const {
  return registered_policies()[parts_->decisions->active()].name;
}

std::vector<PolicyHost::ListedPolicy> PolicyHost::list() const {
  std::vector<ListedPolicy> listed;
  for (const PolicyInfo& info : registered_policies())
    listed.push_back({info, info.name == active()});
  return listed;
}

LearnerState PolicyHost::learner(const std::string& policy) const {
  const auto status = parts_->training->status(policy);
  LearnerState state{status.counters, 0, status.versions, status.origin, ""};
  const auto& options = parts_->options;
  state.epsilon = policy == "dqn" ? options.dqn.epsilon : options.published.epsilon;
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
