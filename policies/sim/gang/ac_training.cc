#include "policies/sim/gang/ac_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tierpilot::gang {
namespace {

struct Step {
  AcInput input;
  size_t chosen = 0;
  float likelihood = 0;  // of what was chosen, then
  size_t likeliest = 0;
  float entropy = 0;
  double at_h = 0;
  double reward = 0;
  float value = 0;
  float advantage = 0;
  float reached = 0;  // what the critic should have said
};

std::vector<float> probabilities(const AcNet& net, const AcInput& input,
                                 std::vector<std::vector<DenseNet::Pass>>* passes = nullptr) {
  auto p = net.logits(input, passes);
  softmax(p);
  return p;
}

// Draws where the trained policy takes the best, and writes everything down.
class Explorer : public Placer {
 public:
  Explorer(const AcNet& net, const GangScene& scene, const AcTrainingSettings& settings,
           uint64_t seed)
      : net_(net), scene_(scene), settings_(settings), random_(seed) {
    double unit_h = 0;
    for (const auto& job : scene.jobs) unit_h += job.units * job.work_h;
    usual_unit_h_ = unit_h / static_cast<double>(scene.jobs.size());
    usual_h_ = std::accumulate(scene.jobs.begin(), scene.jobs.end(), 0.0,
                               [](double sum, const Job& job) { return sum + job.work_h; }) /
               static_cast<double>(scene.jobs.size());
  }

  Units place(const PlacementState& state, const Job& job) override {
    Step step{.input = ac_input(state, job, net_.view), .at_h = state.now_h};
    const auto p = probabilities(net_, step.input);
    step.likeliest = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    for (const float each : p) step.entropy -= each * std::log(std::max(each, 1e-12F));
    double at = random_.unit();
    while (step.chosen + 1 < p.size() && at >= p[step.chosen]) at -= p[step.chosen++];
    step.likelihood = std::max(p[step.chosen], 1e-8F);
    const auto& units = step.input.candidates[step.chosen].units;
    const auto cost = expected_cost_at(state, job, units, [&](uint32_t unit) {
      return settings_.charges_estimates ? state.per_h[unit]
                                         : scene_.failures.rate(unit, state.now_h);
    });
    step.reward = -10 * (cost.unit_h / usual_unit_h_ + settings_.own_hours * cost.hours / usual_h_);
    net_.critic.forward(step.input.state, pass_);
    step.value = pass_.output()[0];
    steps.push_back(std::move(step));
    return steps.back().input.candidates[steps.back().chosen].units;
  }

  std::vector<Step> steps;

 private:
  const AcNet& net_;
  const GangScene& scene_;
  const AcTrainingSettings& settings_;
  double usual_unit_h_ = 0, usual_h_ = 0;
  SeededRandom random_;
  DenseNet::Pass pass_;
};

void set_advantages(std::vector<Step>& steps, const AcTrainingSettings& settings) {
  double ahead = 0;
  for (size_t i = steps.size(); i-- > 0;) {
    const bool last = i + 1 == steps.size();
    const double keeps =
        last ? 0 : std::exp(-(steps[i + 1].at_h - steps[i].at_h) / settings.horizon_h);
    const double next = last ? 0 : steps[i + 1].value;
    ahead = steps[i].reward + keeps * next - steps[i].value + keeps * settings.trace * ahead;
    steps[i].advantage = static_cast<float>(ahead);
    steps[i].reached = static_cast<float>(ahead) + steps[i].value;
  }
}

void normalise(std::vector<Step>& steps) {
  double sum = 0, squares = 0;
  for (const auto& step : steps) {
    sum += step.advantage;
    squares += double{step.advantage} * step.advantage;
  }
  const double mean = sum / static_cast<double>(steps.size());
  const double deviation =
      std::sqrt(std::max(squares / static_cast<double>(steps.size()) - mean * mean, 1e-12));
  for (auto& step : steps) step.advantage = static_cast<float>((step.advantage - mean) / deviation);
}

class Updater {
 public:
  Updater(AcNet& net, const AcTrainingSettings& settings) : net_(net), settings_(settings) {}

  void add(const Step& step) {
    const auto p = probabilities(net_, step.input, &passes_);
    const float ratio = p[step.chosen] / step.likelihood;
    const bool clipped =
        step.advantage > 0 ? ratio > 1 + settings_.clip : ratio < 1 - settings_.clip;
    const float push = clipped ? 0 : -step.advantage * ratio;
    double entropy = 0;
    for (const float each : p) entropy -= each * std::log(std::max(each, 1e-12F));
    for (size_t i = 0; i < p.size(); ++i) {
      const float of_entropy =
          p[i] * (std::log(std::max(p[i], 1e-12F)) + static_cast<float>(entropy));
      const float by_logit =
          push * ((i == step.chosen ? 1.0F : 0.0F) - p[i]) + settings_.entropy * of_entropy;
      const float by_unit = by_logit / static_cast<float>(passes_[i].size());
      if (std::abs(by_logit) < 1e-7F) continue;
      for (size_t unit = 0; unit < step.input.candidates[i].seen.size(); ++unit)
        net_.actor.backward(passes_[i][unit], {&by_unit, 1});
    }
    net_.critic.forward(step.input.state, pass_);
    const float error = pass_.output()[0] - step.reached;
    net_.critic.backward(pass_, {&error, 1});
  }

  void apply(size_t count) {
    net_.actor.step(settings_.rate, static_cast<float>(count));
    net_.critic.step(settings_.critic_rate, static_cast<float>(count));
  }

 private:
  AcNet& net_;
  const AcTrainingSettings& settings_;
  std::vector<std::vector<DenseNet::Pass>> passes_;
  DenseNet::Pass pass_;
};

AcRound told(uint32_t number, const std::vector<Step>& steps) {
  AcRound round{.number = number};
  for (const auto& step : steps) {
    round.entropy += step.entropy;
    round.changed += step.likeliest != step.input.heuristic ? 1 : 0;
    round.cost -= step.reward;
  }
  const auto count = static_cast<double>(steps.size());
  round.entropy /= count;
  round.changed /= count;
  round.cost /= count;
  return round;
}

void update(AcNet& net, const AcTrainingSettings& settings, std::vector<Step>& steps,
            SeededRandom& random) {
  normalise(steps);
  Updater updater(net, settings);
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (uint32_t pass = 0; pass < settings.passes; ++pass) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (size_t begin = 0; begin < order.size(); begin += settings.batch) {
      const size_t end = std::min<size_t>(begin + settings.batch, order.size());
      for (size_t i = begin; i < end; ++i) updater.add(steps[order[i]]);
      updater.apply(end - begin);
    }
  }
}

}  // namespace

RunCost expected_cost_at(const PlacementState& state, const Job& job, const Units& units,
                         const std::function<double(uint32_t unit)>& per_h) {
  double true_per_h = 0, told_per_h = 0;
  std::vector<uint32_t> nodes;
  for (const uint32_t unit : units) {
    true_per_h += per_h(unit);
    told_per_h += state.per_h[unit];
    nodes.push_back(state.node_of(unit));
  }
  std::sort(nodes.begin(), nodes.end());
  const auto count = std::unique(nodes.begin(), nodes.end()) - nodes.begin();
  const double speed =
      speed_of(job.network, job.units, static_cast<uint32_t>(count), state.units_per_node);
  const double interval_h = checkpoint_interval_h(state.costs, told_per_h);
  const double stretch = (1 + state.costs.checkpoint_h / interval_h) / speed;
  const double whole_h = job.work_h / job.estimate * stretch;
  const double fails = -std::expm1(-true_per_h * whole_h);
  const double lasts_h = true_per_h > 1e-12 ? fails / true_per_h : whole_h;
  const double again_h = fails * (std::min(interval_h, whole_h) / 2 + state.costs.restart_h);
  const double overhead_h = fetch_hours(state, units) + lasts_h * (1 - 1 / stretch) + again_h;
  return {.unit_h = overhead_h * job.units + fails * state.costs.repair_h, .hours = overhead_h};
}

AcNet train_ac(const AcTrainingSettings& settings,
               const std::function<GangScene(uint64_t seed)>& scene_of,
               const std::function<void(const AcRound&)>& progress) {
  return train_ac_on(AcNet(settings.seed), settings, scene_of, progress);
}

AcNet train_ac_on(AcNet net, const AcTrainingSettings& settings,
                  const std::function<GangScene(uint64_t seed)>& scene_of,
                  const std::function<void(const AcRound&)>& progress) {
  SeededRandom random(derived_seed(settings.seed, "gang ac training"));
  for (uint32_t round = 1; round <= settings.rounds; ++round) {
    std::vector<Step> steps;
    for (uint32_t i = 0; i < settings.scenes; ++i) {
      const auto scene = scene_of(random.bits() >> 16);
      Explorer explorer(net, scene, settings, random.bits());
      simulate(scene, explorer);
      set_advantages(explorer.steps, settings);
      std::move(explorer.steps.begin(), explorer.steps.end(), std::back_inserter(steps));
    }
    update(net, settings, steps, random);
    progress(told(round, steps));
  }
  return net;
}

}  // namespace tierpilot::gang
