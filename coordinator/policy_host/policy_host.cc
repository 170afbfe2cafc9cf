#include "coordinator/policy_host/policy_host.h"

#include <fmt/format.h>

#include <cmath>
#include <future>
#include <utility>

#include "base/log.h"
#include "coordinator/policy_host/saved_learner.h"
#include "coordinator/policy_host/training_thread.h"

namespace tierpilot {

struct PolicyHost::Parts {
  explicit Parts(PolicyHostOptions options_in)
      : options(std::move(options_in)), ledger(options.pending_capacity) {}

  void feed() {
    if (auto complete = ledger.take_complete(); !complete.empty())
      training->add(std::move(complete));
  }
  void copy_when_due() {
    const uint64_t decisions = ledger.decisions();
    if (decisions - copied_at < options.settings.copy_interval) return;
    copied_at = decisions;
    training->copy_weights();
  }
  void request_save(std::shared_ptr<std::promise<Status>> done) {
    training->save({checkpoint_file(options.state_dir), ledger.snapshot(), ledger.decisions(),
                    std::move(done)});
  }
  void save_if_changed() {
    const std::pair now{ledger.decisions(), training->counters().batches};
    if (options.state_dir.empty() || now == saved_at) return;
    saved_at = now;
    request_save(nullptr);
  }

  PolicyHostOptions options;
  std::string note;
  ExperienceLedger ledger;
  std::unique_ptr<TrainingThread> training;
  uint64_t copied_at = 0;                     // decision thread
  std::pair<uint64_t, uint64_t> saved_at;     // decision thread
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

Result<std::vector<DecisionThread::NamedPolicy>> make_policies(const PolicyContext& context) {
  std::vector<DecisionThread::NamedPolicy> policies;
  for (const PolicyInfo& info : registered_policies()) {
    auto policy = make_policy(info.name, context);
    if (!policy) return tl::unexpected(policy.error());
    policies.push_back({info.name, std::move(*policy)});
  }
  return policies;
}

}  // namespace

Result<std::unique_ptr<PolicyHost>> PolicyHost::start(PolicyHostOptions options) {
  if (Status valid = validate(options.settings); !valid) return tl::unexpected(valid.error());
  const auto active = index_of(options.active);
  if (!active) return tl::unexpected(active.error());
  auto parts = std::make_unique<Parts>(std::move(options));
  const PolicyHostOptions& given = parts->options;

  auto trainer = std::make_unique<Trainer>(given.settings, given.seed);
  auto saved = take_over_learner(given.state_dir, *trainer);
  if (!saved) return tl::unexpected(saved.error());
  parts->note = saved->note;
  parts->ledger.restore(std::move(saved->pending), saved->decisions);
  parts->copied_at = saved->decisions;

  auto mailbox = std::make_shared<WeightsMailbox>();
  auto policies = make_policies({given.seed, given.settings, mailbox});
  if (!policies) return tl::unexpected(policies.error());
  parts->training = std::make_unique<TrainingThread>(
      std::move(trainer), saved->experiences, std::move(mailbox), given.settings.training_nice);
  Parts* host = parts.get();
  parts->decisions = std::make_unique<DecisionThread>(
      std::move(*policies), *active, FeatureSettings{given.settings.slow_share}, parts->ledger,
      std::chrono::milliseconds(given.save_interval_ms),
      DecisionThread::Hooks{[host] {
                              host->feed();
                              host->copy_when_due();
                            },
                            [host] { host->save_if_changed(); }});
  return std::unique_ptr<PolicyHost>(new PolicyHost(std::move(parts)));
}

PolicyHost::PolicyHost(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

PolicyHost::~PolicyHost() {
  parts_->decisions.reset();
  // A failure is in the log.
  if (!parts_->options.state_dir.empty()) (void)save();
}

void PolicyHost::decide(uint64_t id, View view, std::function<void(Decided)> done) {
  parts_->ledger.requested(id);
  parts_->decisions->submit(
      {id, std::move(view), std::move(done), std::chrono::steady_clock::now()});
}

void PolicyHost::override_action(uint64_t id, const View& view, size_t node) {
  ExperienceLedger::ObservationPtr seen;
  uint32_t slot = kSlots;
  if (node < view.nodes.size() && view.nodes[node].slot < kSlots) {
    slot = view.nodes[node].slot;
    seen =
        std::make_shared<const Observation>(observe(view, {parts_->options.settings.slow_share}));
  }
  parts_->ledger.overridden(id, std::move(seen), slot);
  parts_->feed();
}

void PolicyHost::outcome(uint64_t id, const RewardParts& reward) {
  if (!std::isfinite(reward.reward)) return abandon(id);
  parts_->ledger.outcome(id, reward.reward);
  parts_->feed();
}

void PolicyHost::abandon(uint64_t id) {
  parts_->ledger.abandon(id);
}

Status PolicyHost::use(std::string_view name) {
  const auto index = index_of(name);
  if (!index) return tl::unexpected(index.error());
  if (registered_policies()[*index].learns) parts_->training->copy_weights();
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

LearnerState PolicyHost::learner() const {
  const TrainingThread::Counters counters = parts_->training->counters();
  LearnerState state;
  state.decisions = parts_->ledger.decisions();
  state.experiences = counters.experiences;
  state.duplicates = counters.duplicates;
  state.pending_dropped = parts_->ledger.pending_dropped();
  state.pending = parts_->ledger.pending();
  state.replay_size = counters.replay_size;
  state.training_steps = counters.training_steps;
  state.weights_version = counters.weights_version;
  state.epsilon = parts_->options.settings.epsilon;
  if (counters.batches > 0) state.loss = counters.loss;
  state.note = counters.failed ? "training stopped after an error, see the log" : parts_->note;
  return state;
}

Status PolicyHost::save() {
  if (parts_->options.state_dir.empty())
    return fail(ErrorCode::kUnavailable, "the learner has no state directory to be saved in");
  auto done = std::make_shared<std::promise<Status>>();
  auto saved = done->get_future();
  parts_->request_save(std::move(done));
  return saved.get();
}

}  // namespace tierpilot
