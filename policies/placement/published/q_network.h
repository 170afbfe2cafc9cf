// The Q network of S1 as a value that only computes. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "policies/placement/published/settings.h"

namespace tierpilot {

struct QNetworkImpl;

class QNetwork {
 public:
  // std::runtime_error: there is no libtorch.
  QNetwork(const NetworkSettings& settings, uint64_t seed);
  QNetwork(QNetwork&&) noexcept;
  ~QNetwork();

  // `observations`: n times ObservationLayout::kSize floats; n times kSlots values, without
  // dropout. May run in several threads at once while nobody trains this network. One observation
  // that is one token is computed without libtorch.
  std::vector<float> q_values(std::span<const float> observations) const;
  // Always by libtorch.
  std::vector<float> q_values_by_torch(std::span<const float> observations) const;

  // A copy that shares nothing.
  QNetwork clone() const;
  size_t weight_count() const;
  // Every parameter, in the module's fixed order.
  std::vector<float> weights() const;
  // kInvalid when the count differs or a weight is not finite; then nothing changes.
  Status set_weights(std::span<const float> weights);
  // Reads every weight once and adds them up.
  float sum_weights() const;
  // The same for those that a decision reads alone: 85 % of them at the published size, where one
  // token attends only to itself. All of them when an observation is several tokens.
  float sum_weights_read() const;

  QNetworkImpl& impl() { return *impl_; }

 private:
  std::vector<float> one_q_values(std::span<const float> observation) const;

  NetworkSettings settings_;
  std::unique_ptr<QNetworkImpl> impl_;
};

}  // namespace tierpilot
