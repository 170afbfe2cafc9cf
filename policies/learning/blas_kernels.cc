#include "policies/learning/blas_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <mutex>

namespace tierpilot {
namespace {

#if defined(__x86_64__)
constexpr unsigned kLastFamilyKnownToBlis = 0x19;
// The ids of BLIS's arch_t, the same from 0.9 to 1.0; it takes no names.
constexpr const char* kZen3 = "6";

bool amd_newer_than_blis() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0 || ebx != signature_AMD_ebx) return false;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  const unsigned family = ((eax >> 8) & 0xF) + ((eax >> 20) & 0xFF);
  return family > kLastFamilyKnownToBlis;
}
#endif

}  // namespace

void select_blas_kernels() {
#if defined(__x86_64__)
  static std::once_flag once;
  std::call_once(once, [] {
    if (amd_newer_than_blis() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      setenv("BLIS_ARCH_TYPE", kZen3, 0);
  });
#endif
}

}  // namespace tierpilot
