#include "policies/sim/evaluation/externality_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "policies/placement/dqn/holding.h"

namespace tierpilot::sim {
namespace {

class ExternalityPolicy final : public Policy {
 public:
  ExternalityPolicy(const ExternalityWeights& weights, FeatureMask features)
      : weights_(weights), features_(features) {}

  bool holds() const override { return true; }
  Decision decide(const View& view) override {
    const NodeRates typical = typical_rates(view);
    const Externality externality(view, typical, features_);
    Decision decision;
    double least_s = HUGE_VAL;
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      if (!view.nodes[i].candidate) continue;
      const FinishEstimate estimate = estimate_finish(view.task, view.nodes[i], typical);
      const double cost_s =
          estimate.finish_s() + externality.cost_s(view.nodes[i], estimate, weights_);
      if (cost_s < least_s) least_s = cost_s, decision.node = i;
    }
    if (decision.node == kNoNode) return decision;
    decision.held_for = worth_waiting_for(view, features_, weights_, decision.node);
    if (decision.held_for != kNoNode) decision.node = kNoNode;
    return decision;
  }

 private:
  const ExternalityWeights weights_;
  const FeatureMask features_;
};

// Two uniform draws make one (Box, Muller: Annals of Mathematical Statistics 29, 1958).
double normal(SeededRandom& random) {
  constexpr double kTau = 6.283185307179586;
  return std::sqrt(-2 * std::log1p(-random.unit())) * std::cos(kTau * random.unit());
}

struct Candidate {
  ExternalityWeights weights;
  double cost = 0;
};

class Search {
 public:
  Search(const SearchSettings& settings, FeatureMask features, uint32_t threads,
         SeededRandom& random)
      : settings_(settings),
        features_(features),
        threads_(threads),
        random_(random),
        mean_(settings.start) {
    spread_.fill(0.3);
  }

  Status draw_runs() {
    for (uint32_t i = 0; i < settings_.runs; ++i) {
      auto run = draw_training_run(random_, settings_.tasks);
      if (!run) return tl::unexpected(run.error());
      runs_.push_back(std::move(*run));
    }
    return {};
  }

  Result<Generation> generation(uint32_t number) {
    draw_population();
    first_run_ = size_t{number} * settings_.runs_each % runs_.size();
    if (auto status = value_all(); !status) return tl::unexpected(status.error());
    std::stable_sort(population_.begin(), population_.end(),
                     [](const auto& a, const auto& b) { return a.cost < b.cost; });
    const size_t elite = std::max<size_t>(population_.size() / 4, 1);
    move_to(elite);
    means_.push_back(mean_);
    double cost = 0;
    for (size_t i = 0; i < elite; ++i) cost += population_[i].cost / static_cast<double>(elite);
    return Generation{number, cost};
  }

  // Of the means of the second half of the generations: each of them follows the luck of its runs.
  ExternalityWeights result() const {
    if (means_.empty()) return mean_;
    ExternalityWeights average{};
    const size_t from = means_.size() / 2;
    for (size_t g = from; g < means_.size(); ++g)
      for (size_t j = 0; j < kExternalityCount; ++j)
        average[j] += means_[g][j] / static_cast<double>(means_.size() - from);
    return average;
  }

 private:
  void draw_population() {
    population_.assign(std::max(settings_.population, 1U), {.weights = mean_});
    for (size_t i = 1; i < population_.size(); ++i)
      for (size_t j = 0; j < kExternalityCount; ++j)
        population_[i].weights[j] += spread_[j] * normal(random_);
  }

  // All on the same runs, which the next generation leaves for others.
  Status value_all() {
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Status failed;
    const auto work = [&] {
      for (size_t i = next++; i < population_.size(); i = next++) {
        const auto cost = cost_of(population_[i].weights);
        const std::lock_guard lock(mutex);
        if (cost) population_[i].cost = *cost;
        if (!cost && failed) failed = tl::unexpected(cost.error());
      }
    };
    {
      std::vector<std::jthread> others;
      for (uint32_t i = 1; i < threads_; ++i) others.emplace_back(work);
      work();
    }
    return failed;
  }

  Result<double> cost_of(const ExternalityWeights& weights) const {
    double sum = 0;
    const size_t count = std::min<size_t>(settings_.runs_each, runs_.size());
    for (size_t i = 0; i < count; ++i) {
      const auto policy = make_externality_policy(weights, features_);
      const auto cost = runs_[(first_run_ + i) % runs_.size()].compare(*policy);
      if (!cost) return tl::unexpected(cost.error());
      sum += (*cost > 0 ? settings_.worse_factor : 1) * weighed(*cost);
    }
    return sum / static_cast<double>(count);
  }

  void move_to(size_t elite) {
    constexpr double kNew = 0.7;  // the spread's memory keeps it from closing too soon
    constexpr double kCooling = 0.95;
    for (size_t j = 0; j < kExternalityCount; ++j) {
      double mean = 0;
      double variance = 0;
      const auto count = static_cast<double>(elite);
      for (size_t i = 0; i < elite; ++i) mean += population_[i].weights[j] / count;
      for (size_t i = 0; i < elite; ++i)
        variance += std::pow(population_[i].weights[j] - mean, 2) / count;
      mean_[j] = mean;
      spread_[j] = kNew * std::sqrt(variance) + (1 - kNew) * kCooling * spread_[j];
    }
  }

  const SearchSettings& settings_;
  const FeatureMask features_;
  const uint32_t threads_;
  SeededRandom& random_;
  std::vector<TrainingRun> runs_;
  size_t first_run_ = 0;
  std::vector<Candidate> population_;
  ExternalityWeights mean_;
  ExternalityWeights spread_{};
  std::vector<ExternalityWeights> means_;  // after each generation
};

}  // namespace

std::unique_ptr<Policy> make_externality_policy(const ExternalityWeights& weights,
                                                FeatureMask features) {
  return std::make_unique<ExternalityPolicy>(weights, features);
}

Result<ExternalityWeights> search_externality(const SearchSettings& settings, FeatureMask features,
                                              uint32_t threads, SeededRandom& random,
                                              const std::function<bool(const Generation&)>& each) {
  Search search(settings, features, threads, random);
  if (settings.generations == 0) return search.result();
  if (auto status = search.draw_runs(); !status) return tl::unexpected(status.error());
  for (uint32_t number = 1; number <= settings.generations; ++number) {
    const auto done = search.generation(number);
    if (!done) return tl::unexpected(done.error());
    if (!each(*done)) break;
  }
  return search.result();
}

}  // namespace tierpilot::sim
