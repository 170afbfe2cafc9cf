// 64-byte vectors in the compiler's own terms, and functions compiled for the widest registers that
// this CPU has. (target_clones would say the same, but its resolvers crash under sanitizers.)
#pragma once

#include <cstdint>

namespace tierpilot::simd {

using U64 = uint64_t __attribute__((vector_size(64)));
using I32 = int32_t __attribute__((vector_size(64)));
using F32 = float __attribute__((vector_size(64)));

enum class Width { kBase, kAvx2, kAvx512 };

inline Width widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    return Width::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Width::kAvx2;
#endif
  return Width::kBase;
}

inline const char* width_name() {
  switch (widest()) {
    case Width::kAvx512:
      return "AVX-512";
    case Width::kAvx2:
      return "AVX2";
    case Width::kBase:
      break;
  }
  return "baseline SIMD";
}

}  // namespace tierpilot::simd

// Defines `name` as `call` compiled for each instruction set; what it calls is always_inline, and
// may use kWidth. The one for this CPU is chosen when the program starts.
#if defined(__x86_64__)
#define TIERPILOT_SIMD_VARIANT(result, name, width, parameters, call)         \
  static result name parameters {                                             \
    [[maybe_unused]] constexpr auto kWidth = ::tierpilot::simd::Width::width; \
    return call;                                                              \
  }
#define TIERPILOT_SIMD(result, name, parameters, call)                               \
  TIERPILOT_SIMD_VARIANT(result, name##_base, kBase, parameters, call)               \
  __attribute__((target("avx2,fma")))                                                \
  TIERPILOT_SIMD_VARIANT(result, name##_avx2, kAvx2, parameters, call)               \
      __attribute__((target("avx512f,avx512dq,fma"))) TIERPILOT_SIMD_VARIANT(        \
          result, name##_avx512, kAvx512, parameters, call) static const auto name = \
          simd::widest() == simd::Width::kAvx512 ? name##_avx512                     \
          : simd::widest() == simd::Width::kAvx2 ? name##_avx2                       \
                                                 : name##_base;
#else
#define TIERPILOT_SIMD(result, name, parameters, call)                        \
  static result name parameters {                                             \
    [[maybe_unused]] constexpr auto kWidth = ::tierpilot::simd::Width::kBase; \
    return call;                                                              \
  }
#endif
