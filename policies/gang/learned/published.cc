#include "policies/gang/learned/published.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tierpilot::gang {
namespace {

constexpr size_t kFlags = 2;  // where S begins in a state

class PublishedPlacer : public Placer {
 public:
  PublishedPlacer(std::shared_ptr<const PublishedNets> nets, std::vector<PublishedStep>* steps)
      : nets_(std::move(nets)), steps_(steps) {}

  std::vector<uint32_t> place(const PlacementState& state, const Job& job) override {
    auto seen = published_state(state.free, job.units, job.work_h);
    std::vector<uint32_t> chosen;
    while (chosen.size() < job.units) {
      nets_->policy.forward(seen, pass_);
      const auto p = masked_probabilities(pass_.output(), seen);
      const auto unit = static_cast<uint32_t>(std::max_element(p.begin(), p.end()) - p.begin());
      write_down(seen, unit);
      chosen.push_back(unit);
      seen[kFlags + unit] = 1;
    }
    return chosen;
  }

 private:
  void write_down(const std::vector<float>& state, uint32_t unit) {
    if (!steps_) return;
    if (!steps_->empty()) steps_->back().next = state;
    steps_->push_back({.state = state, .unit = unit, .next = {}, .reward = 0});
  }

  std::shared_ptr<const PublishedNets> nets_;
  std::vector<PublishedStep>* steps_;
  DenseNet::Pass pass_;
};

DenseNet net_of(uint32_t units, uint32_t outputs, uint64_t seed, const char* purpose) {
  SeededRandom random(derived_seed(seed, purpose));
  return DenseNet({static_cast<uint32_t>(kFlags) + units, 256, 196, 196, 128, outputs}, random);
}

}  // namespace

PublishedNets::PublishedNets(uint32_t count, uint64_t seed)
    : units(count),
      value(net_of(count, 1, seed, "published value network")),
      policy(net_of(count, count, seed, "published policy network")) {}

std::vector<float> published_state(const std::vector<bool>& free, uint32_t needed, double hours) {
  std::vector<float> state{static_cast<float>(needed) / static_cast<float>(free.size()),
                           static_cast<float>(std::log1p(hours))};
  for (const bool is_free : free) state.push_back(is_free ? 0 : 1);
  return state;
}

std::vector<float> masked_probabilities(std::span<const float> logits,
                                        std::span<const float> state) {
  std::vector<float> p(logits.begin(), logits.end());
  for (size_t unit = 0; unit < p.size(); ++unit)
    if (state[kFlags + unit] != 0) p[unit] = -std::numeric_limits<float>::infinity();
  softmax(p);
  return p;
}

std::unique_ptr<Placer> make_published_placer(std::shared_ptr<const PublishedNets> nets,
                                              std::vector<PublishedStep>* steps) {
  return std::make_unique<PublishedPlacer>(std::move(nets), steps);
}

}  // namespace tierpilot::gang
