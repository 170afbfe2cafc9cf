#include "policies/sim/evaluation/training.h"

#include <cmath>

#include "policies/sim/evaluation/teacher.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kPending = 4096;

std::unique_ptr<Policy> frozen(const DqnSettings& settings, const DqnWeights& weights) {
  DqnSettings greedy = settings;
  greedy.epsilon = 0;
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  mailbox->put(std::make_shared<const DqnWeights>(weights));
  return make_dqn_policy(greedy, 1, mailbox);
}

}  // namespace

Training::Training(const TrainingSettings& settings)
    : settings_(settings),
      random_(settings.seed ^ 0x7261696E696E67),  // no seed of an evaluation
      learner_(settings.dqn, settings.seed, kPending, mailbox_) {}

Status Training::run(uint32_t threads,
                     const std::function<bool(const Generation&)>& each_generation,
                     const std::function<bool(const Episode&)>& each_episode) {
  const auto searched = search_externality(settings_.search, settings_.dqn.features, threads,
                                           random_, each_generation);
  if (!searched) return tl::unexpected(searched.error());
  DqnWeights start = learner_.weights();
  start.others = best_.others = *searched;
  if (auto status = learner_.start_from(start); !status) return status;
  if (auto status = draw_trials(); !status) return status;
  const auto untrained = trial(*make_externality_policy(best_.others, settings_.dqn.features));
  if (!untrained) return tl::unexpected(untrained.error());
  best_trial_ = searched_trial_ = *untrained;

  for (uint32_t number = 1; number <= settings_.episodes; ++number) {
    auto done = episode(number);
    if (!done) return tl::unexpected(done.error());
    if (number % settings_.trial_interval == 0)
      if (auto status = try_weights(*done); !status) return status;
    if (!each_episode(*done)) return {};
  }
  return {};
}

DqnWeights Training::weights() const {
  DqnWeights best = best_;
  const DqnWeights last = learner_.weights();
  best.version = last.version;
  best.trained_on = last.trained_on;
  return best;
}

Status Training::draw_trials() {
  for (uint32_t i = 0; i < settings_.trials; ++i) {
    auto run = draw_training_run(random_, settings_.search.tasks);
    if (!run) return tl::unexpected(run.error());
    trials_.push_back(std::move(*run));
  }
  return {};
}

Result<double> Training::trial(Policy& policy) const {
  double logs = 0;
  for (const TrainingRun& run : trials_) {
    const auto compared = run.compare(policy);
    if (!compared) return tl::unexpected(compared.error());
    logs += weighed(*compared);
  }
  return std::exp(logs / static_cast<double>(trials_.size()));
}

Status Training::try_weights(Episode& episode) {
  const DqnWeights weights = learner_.weights();
  const auto now = trial(*frozen(settings_.dqn, weights));
  if (!now) return tl::unexpected(now.error());
  episode.trial = *now;
  if (*now < best_trial_) best_trial_ = *now, best_ = weights;
  return {};
}

Result<Training::Episode> Training::episode(uint32_t number) {
  const auto run = draw_training_run(random_, settings_.tasks);
  if (!run) return tl::unexpected(run.error());
  auto acting = make_dqn_policy(settings_.dqn, random_.bits(), mailbox_);
  acting->explain(false);
  Teacher teacher(learner_, first_task_);
  const auto result = simulate(run->cell.cluster, run->workload, *acting,
                               {.seed = run->seed, .listener = &teacher});
  if (!result) return tl::unexpected(result.error());
  first_task_ += run->workload.tasks.size();
  while (learner_.ready()) learner_.train_batch();
  learner_.copy_weights();
  return Episode{number, result->response_s.mean / run->best_response_s, learner_.counters().loss,
                 0};
}

}  // namespace tierpilot::sim
