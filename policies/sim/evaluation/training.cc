#include "policies/sim/evaluation/training.h"

#include <algorithm>
#include <cmath>

#include "policies/estimate.h"
#include "policies/learning/torch_thread.h"
#include "policies/registry.h"
#include "policies/sim/evaluation/futures.h"
#include "policies/sim/evaluation/training_mix.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kPending = 4096;

struct Candidate {
  size_t node = 0;
  double finish_s = 0;
  double others_s = 0;  // by the formula of least-cost
};

// The one with the earliest estimated end first.
std::vector<Candidate> candidates_of(const View& view) {
  std::vector<Candidate> all;
  const NodeRates typical = typical_rates(view);
  const double load = cluster_load(view);
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (!view.nodes[i].candidate) continue;
    const FinishEstimate estimate = estimate_finish(view.task, view.nodes[i], typical);
    all.push_back({i, estimate.finish_s(), marginal_cost_s(estimate, load) - estimate.finish_s()});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.finish_s < b.finish_s; });
  return all;
}

// Good ones more often than bad ones, as those are what decisions are about; never the first.
size_t draw_other(const std::vector<Candidate>& candidates, SeededRandom& random) {
  const double u = random.unit();
  const auto others = static_cast<double>(candidates.size() - 1);
  return candidates[1 + static_cast<size_t>(u * u * others)].node;
}

// Tells the learner what happens, and notes what was decided.
class Teacher final : public Listener {
 public:
  Teacher(DqnLearner& learner, uint64_t first_id, bool imitates, SeededRandom& random)
      : learner_(learner), first_id_(first_id), imitates_(imitates), random_(random) {}

  void decided(Attempt attempt, const View& view, const Observation&,
               const Decision& decision) override {
    past.nodes.push_back(decision.node);
    past.tasks.push_back(attempt.task);
    learner_.decided(first_id_ + attempt.task, view, decision.node);
    if (imitates_) imitate(view);
  }
  void served(Attempt, const ServiceMeasure&, const RewardParts&) override {}
  void abandoned(Attempt) override {}
  void finished(uint32_t task, const TaskTimes& times) override {
    learner_.finished(first_id_ + task, times.since_decision_s);
  }

  Past past;

 private:
  void imitate(const View& view) {
    const auto candidates = candidates_of(view);
    const Candidate& any = candidates[random_.below(candidates.size())];
    learner_.cost_others(view, any.node, any.others_s - candidates.front().others_s);
  }

  DqnLearner& learner_;
  const uint64_t first_id_;
  const bool imitates_;
  SeededRandom& random_;
};

std::unique_ptr<Policy> frozen(const DqnSettings& settings, const DqnWeights& weights) {
  DqnSettings greedy = settings;
  greedy.epsilon = 0;
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  mailbox->put(std::make_shared<const DqnWeights>(weights));
  auto policy = make_dqn_policy(greedy, 1, mailbox);
  policy->explain(false);
  return policy;
}

Result<double> estimate_response_s(const EvaluationCell& cell, const Workload& workload) {
  const auto policy = make_policy("earliest-finish", {.seed = 1});
  if (!policy) return tl::unexpected(policy.error());
  (*policy)->explain(false);
  const auto result = simulate(cell.cluster, workload, **policy, {});
  if (!result) return tl::unexpected(result.error());
  return result->response_s.mean;
}

uint32_t total_units(const ClusterSpec& cluster) {
  return static_cast<uint32_t>(cluster.unit_count());
}

}  // namespace

Training::Training(const TrainingSettings& settings)
    : settings_(settings),
      random_(settings.seed ^ 0x7261696E696E67),  // no seed of an evaluation
      learner_(settings.dqn, settings.seed, kPending, mailbox_) {}

Status Training::run(const std::function<bool(const Episode&)>& each) {
  use_one_torch_thread();
  if (auto status = draw_trials(); !status) return status;
  for (uint32_t number = 1; number <= settings_.episodes; ++number) {
    auto done = episode(number);
    if (!done) return tl::unexpected(done.error());
    if (number % settings_.trial_interval == 0) {
      const auto trial = run_trials();
      if (!trial) return tl::unexpected(trial.error());
      done->trial = *trial;
    }
    if (!each(*done)) return {};
  }
  return {};
}

Status Training::draw_trials() {
  for (uint32_t i = 0; i < settings_.trials; ++i) {
    Trial trial{.cell = draw_training_cell(random_, 2 * settings_.tasks)};
    trial.workload = generate(trial.cell.workload, trial.cell.cluster, random_.bits());
    const auto response_s = estimate_response_s(trial.cell, trial.workload);
    if (!response_s) return tl::unexpected(response_s.error());
    trial.estimate_response_s = *response_s;
    trials_.push_back(std::move(trial));
  }
  return {};
}

Result<double> Training::run_trials() {
  const DqnWeights weights = learner_.weights();
  double logs = 0;
  for (const Trial& trial : trials_) {
    const auto result =
        simulate(trial.cell.cluster, trial.workload, *frozen(settings_.dqn, weights), {});
    if (!result) return tl::unexpected(result.error());
    logs += std::log(result->response_s.mean / trial.estimate_response_s);
  }
  const double trial = trials_.empty() ? 0 : std::exp(logs / static_cast<double>(trials_.size()));
  if (trial < best_trial_) best_trial_ = trial, best_ = weights;
  return trial;
}

Result<Training::Episode> Training::episode(uint32_t number) {
  const EvaluationCell cell = draw_training_cell(random_, settings_.tasks);
  const Workload workload = generate(cell.workload, cell.cluster, random_.bits());
  const bool imitates = number <= settings_.imitated_episodes;
  auto acting = make_dqn_policy(settings_.dqn, random_.bits(), mailbox_);
  acting->explain(false);
  Teacher teacher(learner_, first_id_, imitates, random_);
  const auto result = simulate(cell.cluster, workload, *acting, {.listener = &teacher});
  if (!result) return tl::unexpected(result.error());
  first_id_ += workload.tasks.size();
  if (!imitates)
    if (auto status = count_futures(cell, workload, teacher.past); !status)
      return tl::unexpected(status.error());
  while (learner_.ready()) learner_.train_batch();
  learner_.copy_weights();

  const auto untrained = estimate_response_s(cell, workload);
  if (!untrained) return tl::unexpected(untrained.error());
  return Episode{number, result->response_s.mean, *untrained, learner_.counters().loss};
}

Status Training::count_futures(const EvaluationCell& cell, const Workload& workload,
                               const Past& past) {
  const DqnWeights weights = learner_.weights();
  for (uint32_t i = 0; i < settings_.futures; ++i) {
    const auto at = static_cast<size_t>(random_.below(past.tasks.size()));
    const uint32_t newest = *std::max_element(
        past.tasks.begin(), past.tasks.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    const uint32_t last = newest + settings_.future_per_unit * total_units(cell.cluster);
    const auto future = [&](const std::function<size_t(const View&)>& choose) {
      return simulate_future(cell.cluster, workload, past, at, last, choose,
                             *frozen(settings_.dqn, weights));
    };
    const auto preferred =
        future([](const View& view) { return candidates_of(view).front().node; });
    if (!preferred) return tl::unexpected(preferred.error());
    const auto candidates = candidates_of(preferred->view);
    if (candidates.size() < 2) continue;
    const size_t node = draw_other(candidates, random_);
    const auto other = future([&](const View&) { return node; });
    if (!other) return tl::unexpected(other.error());
    learner_.cost_others(preferred->view, node,
                         other->others_response_s - preferred->others_response_s);
  }
  return {};
}

}  // namespace tierpilot::sim
