#pragma once
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <string>

namespace tierpilot {

// QEMU translates the guest's code. A hop then costs what the translator made of a loop, which
// differs by up to 10 %; floats are computed in software, integers in the host's vectors.
inline bool processor_is_emulated() {
#if defined(__x86_64__)
  constexpr unsigned kHypervisorLeaf = 0x40000000;
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(kHypervisorLeaf, a, b, c, d);
  std::string vendor;
  for (const unsigned part : {b, c, d}) vendor.append(reinterpret_cast<const char*>(&part), 4);
  return vendor == "TCGTCGTCGTCG";
#else
  return false;
#endif
}

}  // namespace tierpilot
