#include "policies/sim/gang/published_training.h"

#include <algorithm>
#include <limits>

#include "policies/sim/gang/estimated_failures.h"

namespace tierpilot::gang {
namespace {

double least_random_h(const GangScene& scene, uint32_t placements, SeededRandom& random) {
  double least_h = std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < placements; ++i) {
    const auto placer = make_placer("random", random.bits());
    least_h = std::min(least_h, simulate(scene, **placer).makespan_h);
  }
  return least_h;
}

}  // namespace

void IntervalReplay::add(std::vector<PublishedStep> steps) {
  produced_ = steps.size();
  for (auto& step : steps) steps_.push_back(std::move(step));
  while (steps_.size() > most_) steps_.pop_front();
}

std::vector<const PublishedStep*> IntervalReplay::draw(PublishedSettings::Batch batch,
                                                       SeededRandom& random) const {
  std::vector<const PublishedStep*> drawn;
  if (batch == PublishedSettings::Batch::kAll)
    for (const auto& step : steps_) drawn.push_back(&step);
  else
    for (size_t i = 0; i < produced_ && !steps_.empty(); ++i)
      drawn.push_back(&steps_[random.below(steps_.size())]);
  return drawn;
}

PublishedTrainer::PublishedTrainer(uint32_t units, const PublishedSettings& settings)
    : settings_(settings),
      nets_(std::make_shared<PublishedNets>(units, settings.seed)),
      replay_(settings.kept),
      random_(derived_seed(settings.seed, "published training")) {}

PublishedTrainer::Workload PublishedTrainer::learn(GangScene scene) {
  if (settings_.estimated)
    scene.failures = estimated_failures(scene, TrueRates::kAsEstimated, random_.bits());
  std::vector<PublishedStep> steps;
  const auto placer = make_published_placer(nets_, &steps);
  Workload workload;
  workload.makespan_h = simulate(scene, *placer).makespan_h;
  workload.random_h = least_random_h(scene, std::max(settings_.random_placements, 1U), random_);
  workload.reward = (workload.random_h - workload.makespan_h) / workload.random_h;
  workload.steps = steps.size();
  for (auto& step : steps) step.reward = static_cast<float>(workload.reward);
  replay_.add(std::move(steps));
  train(replay_.draw(settings_.batch, random_));
  return workload;
}

void PublishedTrainer::train(const std::vector<const PublishedStep*>& batch) {
  if (batch.empty()) return;
  DenseNet::Pass pass, next;
  for (const auto* step : batch) {
    float ahead = 0;
    if (!step->next.empty()) {
      nets_->value.forward(step->next, next);
      ahead = next.output()[0];
    }
    nets_->value.forward(step->state, pass);
    const float advantage = step->reward + settings_.discount * ahead - pass.output()[0];
    const float by_value = -advantage;
    nets_->value.backward(pass, {&by_value, 1});
    nets_->policy.forward(step->state, pass);
    auto by_logit = masked_probabilities(pass.output(), step->state);
    by_logit[step->unit] -= 1;  // of -ln p
    for (float& each : by_logit) each *= advantage;
    nets_->policy.backward(pass, by_logit);
  }
  const auto count = static_cast<float>(batch.size());
  nets_->value.step(settings_.rate, count);
  nets_->policy.step(settings_.rate, count);
}

}  // namespace tierpilot::gang
