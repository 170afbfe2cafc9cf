#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "daemon/probe/active/measure.h"
#include "daemon/probe/loops/simd.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Eight registers' worth of independent chains hide a multiplication's latency on two pipes; a
// 64-byte vector is one, two or four registers. More would not fit into the sixteen of AVX2.
constexpr int chains_for(simd::Width width) {
  return width == simd::Width::kAvx512 ? 8 : width == simd::Width::kAvx2 ? 4 : 2;
}
constexpr int kOpsPerStep = 2;  // one multiplication, one addition
constexpr int64_t kLanes = 16;
constexpr int64_t kSteps = 100'000;
constexpr int kRounds = 5;  // at least
constexpr std::chrono::milliseconds kTime(50);

template <class Vector, int kChains>
[[gnu::always_inline]] inline double multiply_add(int64_t steps) {
  Vector chain[kChains];
  Vector factor{}, term{};
  factor += 1;
  term += 1;
  // The compiler must not know that the factor is one.
  asm volatile("" : "+m"(factor), "+m"(term));
  for (auto& value : chain) value = term;
  for (int64_t i = 0; i < steps; ++i)
    for (auto& value : chain) value = value * factor + term;
  for (int i = 1; i < kChains; ++i) chain[0] += chain[i];
  return static_cast<double>(chain[0][0]);
}

TIERPILOT_SIMD(double, float_steps, (int64_t steps),
               (multiply_add<simd::F32, chains_for(kWidth)>(steps)))
TIERPILOT_SIMD(double, int_steps, (int64_t steps),
               (multiply_add<simd::I32, chains_for(kWidth)>(steps)))

double ops_per_s(double (*run)(int64_t)) {
  const auto start = SteadyClock::now();
  double result = run(kSteps);
  asm volatile("" : "+m"(result));
  const std::chrono::duration<double> took = SteadyClock::now() - start;
  return static_cast<double>(kSteps * chains_for(simd::widest()) * kOpsPerStep * kLanes) /
         took.count();
}

}  // namespace

OperationRates measure_operations() {
  // The best round: a core that is interrupted computes no slower, it computes something else.
  OperationRates rates;
  // Short rounds, and few where they are slow: an emulated processor computes floats in software.
  const auto start = SteadyClock::now();
  for (int round = 0; round < kRounds || SteadyClock::now() - start < kTime; ++round) {
    rates.float32_ops_per_s = std::max(rates.float32_ops_per_s, ops_per_s(float_steps));
    rates.int32_ops_per_s = std::max(rates.int32_ops_per_s, ops_per_s(int_steps));
  }
  rates.method =
      fmt::format("one core, {}, multiplications and additions in equal parts, best round of {} ms",
                  simd::width_name(), kTime.count());
  return rates;
}

}  // namespace tierpilot
