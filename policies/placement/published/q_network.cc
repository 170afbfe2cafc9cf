#include "policies/placement/published/q_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/learning/finite.h"
#include "policies/placement/networks/library.h"
#include "policies/placement/published/observation.h"
#include "policies/placement/published/q_network_impl.h"

namespace tierpilot {

QNetwork::QNetwork(const NetworkSettings& settings, uint64_t seed)
    : settings_(settings), impl_(network_library().q_network(settings, seed)) {}

QNetwork::QNetwork(QNetwork&&) noexcept = default;
QNetwork::~QNetwork() = default;

std::vector<float> QNetwork::q_values(std::span<const float> observations) const {
  if (impl_->one_token && observations.size() == ObservationLayout::kSize)
    return one_q_values(observations);
  return q_values_by_torch(observations);
}

std::vector<float> QNetwork::one_q_values(std::span<const float> observation) const {
  std::vector<float> q = impl_->one_token->values(observation);
  q.resize(kSlots);
  return q;
}

std::vector<float> QNetwork::q_values_by_torch(std::span<const float> observations) const {
  return impl_->q_values(observations);
}

QNetwork QNetwork::clone() const {
  QNetwork copy(settings_, 0);
  std::ranges::copy(impl_->memory.floats(), copy.impl_->memory.floats().begin());
  return copy;
}

size_t QNetwork::weight_count() const {
  return impl_->memory.floats().size();
}

std::vector<float> QNetwork::weights() const {
  const std::span<const float> all = impl_->memory.floats();
  return {all.begin(), all.end()};
}

Status QNetwork::set_weights(std::span<const float> weights) {
  if (weights.size() != weight_count())
    return fail(ErrorCode::kInvalid, fmt::format("{} weights do not fit a network of {}",
                                                 weights.size(), weight_count()));
  if (!all_finite(weights)) return fail(ErrorCode::kInvalid, "a weight is not a finite number");
  std::ranges::copy(weights, impl_->memory.floats().begin());
  return {};
}

float QNetwork::sum_weights() const {
  return sum_of(impl_->memory.floats());
}

float QNetwork::sum_weights_read() const {
  return impl_->one_token ? impl_->one_token->sum_read() : sum_weights();
}

}  // namespace tierpilot
