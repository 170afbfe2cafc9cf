#include "policies/published/q_network.h"

#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "policies/features.h"
#include "policies/learning/blas_kernels.h"
#include "policies/published/q_module.h"

namespace tierpilot {

QNetwork::QNetwork(const NetworkSettings& settings, uint64_t seed)
    : settings_(settings), impl_(std::make_unique<QNetworkImpl>()) {
  select_blas_kernels();
  impl_->module = std::make_shared<QModule>(settings, seed);
  impl_->module->eval();
}

QNetwork::QNetwork(QNetwork&&) noexcept = default;
QNetwork::~QNetwork() = default;

std::vector<float> QNetwork::q_values(std::span<const float> observations) const {
  const c10::InferenceMode inference;
  const auto size = static_cast<int64_t>(ObservationLayout::kSize);
  const auto count = static_cast<int64_t>(observations.size()) / size;
  // from_blob wants a mutable pointer but the module only reads.
  const torch::Tensor input =
      torch::from_blob(const_cast<float*>(observations.data()), {count, size}, torch::kFloat);
  const torch::Tensor q = impl_->module->forward(input).contiguous();
  const float* values = q.data_ptr<float>();
  return {values, values + q.numel()};
}

QNetwork QNetwork::clone() const {
  QNetwork copy(settings_, 0);
  const torch::NoGradGuard no_grad;
  const auto from = impl_->module->parameters();
  const auto to = copy.impl_->module->parameters();
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  return copy;
}

size_t QNetwork::weight_count() const {
  size_t count = 0;
  for (const auto& parameter : impl_->module->parameters())
    count += static_cast<size_t>(parameter.numel());
  return count;
}

std::vector<float> QNetwork::weights() const {
  std::vector<float> all;
  all.reserve(weight_count());
  for (const auto& parameter : impl_->module->parameters()) {
    const float* values = parameter.data_ptr<float>();
    all.insert(all.end(), values, values + parameter.numel());
  }
  return all;
}

Status QNetwork::set_weights(std::span<const float> weights) {
  if (weights.size() != weight_count())
    return fail(ErrorCode::kInvalid, fmt::format("{} weights do not fit a network of {}",
                                                 weights.size(), weight_count()));
  if (!std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); }))
    return fail(ErrorCode::kInvalid, "a weight is not a finite number");
  for (const auto& parameter : impl_->module->parameters()) {
    const auto count = static_cast<size_t>(parameter.numel());
    std::copy_n(weights.begin(), count, parameter.data_ptr<float>());
    weights = weights.subspan(count);
  }
  return {};
}

float QNetwork::sum_weights() const {
  float total = 0;
  for (const auto& parameter : impl_->module->parameters()) {
    const float* values = parameter.data_ptr<float>();
    // Independent partial sums, so that the loop waits for memory and not for additions.
    std::array<float, 32> sums{};
    const int64_t blocks = parameter.numel() / 32 * 32;
    for (int64_t i = 0; i < blocks; i += 32)
      for (size_t lane = 0; lane < 32; ++lane) sums[lane] += values[i + static_cast<int64_t>(lane)];
    for (float sum : sums) total += sum;
  }
  return total;
}

}  // namespace tierpilot
