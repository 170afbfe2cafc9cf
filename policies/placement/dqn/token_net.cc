#include "policies/placement/dqn/token_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "policies/placement/dqn/tokens.h"

namespace tierpilot {
namespace {

constexpr size_t kWidth = TokenNet::kWidth;
constexpr size_t kLanes = 16;
constexpr size_t kVectors = kWidth / kLanes;
constexpr size_t kBlock = 4;  // tokens at a time: each weight that is loaded is used four times

using Lanes
    [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float)), gnu::may_alias]] =
        float;
using Row = Lanes[kVectors];

struct Layout {
  static constexpr size_t kA = 0;
  static constexpr size_t kAOffset = kA + kTokenSize * kWidth;
  static constexpr size_t kB = kAOffset + kWidth;
  static constexpr size_t kC = kB + kWidth * kWidth;
  static constexpr size_t kBOffset = kC + 2 * kWidth * kWidth;
  static constexpr size_t kOut = kBOffset + kWidth;
  static constexpr size_t kOutOffset = kOut + kWidth;
  static constexpr size_t kCount = kOutOffset + 1;
};

// out[t] = relu(offset + sum_i in[t][i] matrix[i]) for `Tokens` tokens.
template <size_t Tokens>
[[gnu::always_inline]] inline void dense_relu(const float* in, size_t in_size, const float* matrix,
                                              const float* offset, Row* out) {
  Row sums[Tokens];
  for (size_t t = 0; t < Tokens; ++t)
    for (size_t v = 0; v < kVectors; ++v)
      std::memcpy(&sums[t][v], offset + v * kLanes, sizeof(Lanes));
  for (size_t i = 0; i < in_size; ++i) {
    Row row;
    std::memcpy(&row, matrix + i * kWidth, sizeof(row));
    for (size_t t = 0; t < Tokens; ++t) {
      const float x = in[t * in_size + i];
      for (size_t v = 0; v < kVectors; ++v) sums[t][v] += x * row[v];
    }
  }
  for (size_t t = 0; t < Tokens; ++t)
    for (size_t v = 0; v < kVectors; ++v) out[t][v] = sums[t][v] > 0 ? sums[t][v] : Lanes{};
}

[[gnu::always_inline]] inline float dot(const Row& row, const float* weights) {
  Lanes sum{};
  for (size_t v = 0; v < kVectors; ++v) {
    Lanes w;
    std::memcpy(&w, weights + v * kLanes, sizeof(w));
    sum += row[v] * w;
  }
  float total = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) total += sum[lane];
  return total;
}

template <size_t Tokens>
[[gnu::always_inline]] inline void hide(const float* features, const float* weights,
                                        float* hidden) {
  Row rows[Tokens];
  dense_relu<Tokens>(features, kTokenSize, weights + Layout::kA, weights + Layout::kAOffset, rows);
  std::memcpy(hidden, rows, sizeof(rows));
}

template <size_t Tokens>
[[gnu::always_inline]] inline void value(const float* hidden, const float* weights,
                                         const float* offset, float* values) {
  Row rows[Tokens];
  dense_relu<Tokens>(hidden, kWidth, weights + Layout::kB, offset, rows);
  for (size_t t = 0; t < Tokens; ++t)
    values[t] += dot(rows[t], weights + Layout::kOut) + weights[Layout::kOutOffset];
}

// C g + b, with g the mean and the maximum of the hidden tokens.
[[gnu::always_inline]] inline void pool(const float* hidden, size_t count, const float* weights,
                                        float* offset) {
  float pooled[2 * kWidth] = {};
  for (size_t t = 0; t < count; ++t)
    for (size_t i = 0; i < kWidth; ++i) {
      const float h = hidden[t * kWidth + i];
      pooled[i] += h;
      pooled[kWidth + i] = std::max(pooled[kWidth + i], h);
    }
  for (size_t i = 0; i < kWidth; ++i) pooled[i] /= static_cast<float>(count);
  std::memcpy(offset, weights + Layout::kBOffset, kWidth * sizeof(float));
  for (size_t i = 0; i < 2 * kWidth; ++i)
    for (size_t o = 0; o < kWidth; ++o)
      offset[o] += pooled[i] * weights[Layout::kC + i * kWidth + o];
}

[[gnu::always_inline]] inline void compute(const float* features, size_t count,
                                           const float* weights, float* hidden, float* values) {
  size_t t = 0;
  for (; t + kBlock <= count; t += kBlock)
    hide<kBlock>(features + t * kTokenSize, weights, hidden + t * kWidth);
  for (; t < count; ++t) hide<1>(features + t * kTokenSize, weights, hidden + t * kWidth);
  float offset[kWidth];
  pool(hidden, count, weights, offset);
  for (t = 0; t + kBlock <= count; t += kBlock)
    value<kBlock>(hidden + t * kWidth, weights, offset, values + t);
  for (; t < count; ++t) value<1>(hidden + t * kWidth, weights, offset, values + t);
}

using Compute = void (*)(const float*, size_t, const float*, float*, float*);

// By hand instead of target_clones: its resolvers run before a thread sanitizer is ready.
void compute_plain(const float* features, size_t count, const float* weights, float* hidden,
                   float* values) {
  compute(features, count, weights, hidden, values);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void compute_avx2(const float* features, size_t count,
                                              const float* weights, float* hidden, float* values) {
  compute(features, count, weights, hidden, values);
}
[[gnu::target("avx512f,avx512dq,avx512vl,fma")]] void compute_avx512(const float* features,
                                                                     size_t count,
                                                                     const float* weights,
                                                                     float* hidden, float* values) {
  compute(features, count, weights, hidden, values);
}
#endif

Compute best_compute() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return compute_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return compute_avx2;
#endif
  return compute_plain;
}

}  // namespace

TokenNet::TokenNet() : weights_(Layout::kCount) {}

size_t TokenNet::weight_count() {
  return Layout::kCount;
}

Status TokenNet::set_weights(std::vector<float> weights) {
  if (weights.size() != Layout::kCount)
    return fail(ErrorCode::kInvalid, fmt::format("{} weights do not fit a network of {}",
                                                 weights.size(), Layout::kCount));
  if (!std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); }))
    return fail(ErrorCode::kInvalid, "a weight is not a finite number");
  weights_ = std::move(weights);
  blank_ =
      std::all_of(weights_.begin() + Layout::kOut, weights_.end(), [](float w) { return w == 0; });
  return {};
}

void TokenNet::add_values(std::span<const float> features, std::span<float> values,
                          Scratch& scratch) const {
  if (values.empty() || blank_) return;
  static const Compute kCompute = best_compute();
  scratch.hidden.resize(values.size() * kWidth);
  kCompute(features.data(), values.size(), weights_.data(), scratch.hidden.data(), values.data());
}

}  // namespace tierpilot
