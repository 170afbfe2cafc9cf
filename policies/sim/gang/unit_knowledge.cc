#include "policies/sim/gang/unit_knowledge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tierpilot::gang {

UnitKnowledge::UnitKnowledge(const GangScene& scene, PlacementState& state)
    : scene_(scene), state_(state) {
  counts_ = scene.failures.past;
  days_h_.assign(scene.units, scene.failures.past_h);
  fleet_per_h_ = std::max(std::accumulate(counts_.begin(), counts_.end(), 0.0), 1.0) /
                 (scene.failures.past_h * scene.units);
  state.per_h.resize(scene.units);
  state.rate_shape.resize(scene.units);
  state.failed_h = scene.failures.past_times_h;
  state.failed_h.resize(scene.units);
  counted_at_h_.resize(scene.units);
  for (uint32_t unit = 0; unit < scene.units; ++unit) look_again(unit, false);
  told_until_now();
}

void UnitKnowledge::look_again(uint32_t unit, bool was_busy) {
  if (scene_.told) return;
  const double gone_h = state_.now_h - counted_at_h_[unit];
  const double keeps = std::exp2(-gone_h / scene_.half_life_h);
  counts_[unit] *= keeps;
  days_h_[unit] = days_h_[unit] * keeps + (was_busy ? gone_h : 0);
  counted_at_h_[unit] = state_.now_h;
  state_.rate_shape[unit] = scene_.prior_shape + counts_[unit];
  state_.per_h[unit] =
      state_.rate_shape[unit] / (scene_.prior_shape / fleet_per_h_ + days_h_[unit]);
}

void UnitKnowledge::failed(uint32_t unit) {
  state_.failed_h[unit].push_back(state_.now_h);
  counts_[unit] += 1;
  look_again(unit, false);
}

void UnitKnowledge::told_until_now() {
  if (!scene_.told) return;
  const size_t before = next_told_;
  while (next_told_ < scene_.told->size() && (*scene_.told)[next_told_].from_h <= state_.now_h)
    ++next_told_;
  if (next_told_ == before) return;
  const auto& now = (*scene_.told)[next_told_ - 1];
  for (uint32_t unit = 0; unit < scene_.units; ++unit) {
    state_.per_h[unit] = now.per_h[state_.node_of(unit)];
    state_.rate_shape[unit] = now.shape[state_.node_of(unit)];
  }
}

}  // namespace tierpilot::gang
