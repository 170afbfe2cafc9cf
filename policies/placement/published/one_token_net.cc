#include "policies/placement/published/one_token_net.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tierpilot {
namespace {

constexpr size_t kLanes = 16;
constexpr size_t kUnroll = 4;
constexpr size_t kStep = kLanes * kUnroll;
// In floats. Prefetchers of processors stop at a page's end.
constexpr size_t kAhead = 2048;

using Lanes
    [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float)), gnu::may_alias]] =
        float;

[[gnu::always_inline]] inline Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

[[gnu::always_inline]] inline float lanes_sum(const Lanes (&sums)[kUnroll]) {
  const Lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float total = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) total += all[lane];
  return total;
}

[[gnu::always_inline]] inline float dot(const float* weights, const float* in, size_t count) {
  Lanes sums[kUnroll] = {};
  size_t i = 0;
  for (; i + kStep <= count; i += kStep)
    for (size_t u = 0; u < kUnroll; ++u) {
      __builtin_prefetch(weights + i + u * kLanes + kAhead);
      sums[u] += load(weights + i + u * kLanes) * load(in + i + u * kLanes);
    }
  float rest = 0;
  for (; i < count; ++i) rest += weights[i] * in[i];
  return lanes_sum(sums) + rest;
}

[[gnu::always_inline]] inline void dense(const DenseWeights& weights, const float* in, float* out) {
  for (size_t o = 0; o < weights.out; ++o)
    out[o] = weights.offset[o] + dot(weights.matrix + o * weights.in, in, weights.in);
}

[[gnu::always_inline]] inline float sum(const float* weights, size_t count) {
  Lanes sums[kUnroll] = {};
  size_t i = 0;
  for (; i + kStep <= count; i += kStep)
    for (size_t u = 0; u < kUnroll; ++u) {
      __builtin_prefetch(weights + i + u * kLanes + kAhead);
      sums[u] += load(weights + i + u * kLanes);
    }
  float rest = 0;
  for (; i < count; ++i) rest += weights[i];
  return lanes_sum(sums) + rest;
}

struct Kernels {
  void (*dense)(const DenseWeights& weights, const float* in, float* out);
  float (*sum)(const float* weights, size_t count);
};

// By hand instead of target_clones: its resolvers run before a thread sanitizer is ready.
void dense_plain(const DenseWeights& weights, const float* in, float* out) {
  dense(weights, in, out);
}
float sum_plain(const float* weights, size_t count) {
  return sum(weights, count);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void dense_avx2(const DenseWeights& weights, const float* in,
                                            float* out) {
  dense(weights, in, out);
}
[[gnu::target("avx2,fma")]] float sum_avx2(const float* weights, size_t count) {
  return sum(weights, count);
}
[[gnu::target("avx512f,avx512dq,avx512vl,fma")]] void dense_avx512(const DenseWeights& weights,
                                                                   const float* in, float* out) {
  dense(weights, in, out);
}
[[gnu::target("avx512f,avx512dq,avx512vl,fma")]] float sum_avx512(const float* weights,
                                                                  size_t count) {
  return sum(weights, count);
}
#endif

Kernels best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return {dense_avx512, sum_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {dense_avx2, sum_avx2};
#endif
  return {dense_plain, sum_plain};
}

const Kernels& kernels() {
  static const Kernels kBest = best_kernels();
  return kBest;
}

using Values = std::vector<float>;

Values dense(const DenseWeights& weights, std::span<const float> in) {
  Values out(weights.out);
  kernels().dense(weights, in.data(), out.data());
  return out;
}

Values relu(Values values) {
  for (float& value : values) value = std::max(value, 0.0F);
  return values;
}

// Of a + b.
Values norm(const NormWeights& weights, const Values& a, const Values& b) {
  const auto count = static_cast<float>(a.size());
  Values values(a.size());
  float mean = 0;
  for (size_t i = 0; i < a.size(); ++i) mean += values[i] = a[i] + b[i];
  mean /= count;
  float variance = 0;
  for (float value : values) variance += (value - mean) * (value - mean);
  const float scale = 1 / std::sqrt(variance / count + weights.epsilon);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (values[i] - mean) * scale * weights.scale[i] + weights.offset[i];
  return values;
}

float sum_of(const DenseWeights& weights) {
  return kernels().sum(weights.matrix, weights.in * weights.out);
}

}  // namespace

std::vector<float> OneTokenNet::values(std::span<const float> observation) const {
  Values hidden = dense(embedding, observation);
  for (const EncoderWeights& layer : encoder) {
    hidden =
        norm(layer.norm_attention, hidden, dense(layer.projection, dense(layer.value, hidden)));
    hidden =
        norm(layer.norm_feed_forward, hidden, dense(layer.down, relu(dense(layer.up, hidden))));
  }
  return dense(output, relu(dense(linear, hidden)));
}

float OneTokenNet::sum_read() const {
  float total = sum_of(embedding);
  for (const EncoderWeights& layer : encoder)
    total += sum_of(layer.value) + sum_of(layer.projection) + sum_of(layer.up) + sum_of(layer.down);
  return total + sum_of(linear) + sum_of(output);
}

float sum_of(std::span<const float> weights) {
  return kernels().sum(weights.data(), weights.size());
}

}  // namespace tierpilot
