// The process's effective capabilities, to say which one is missing when the kernel says no.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sysroot.h"

namespace tierpilot {

class Capabilities {
 public:
  // From the text of /proc/<pid>/status; a text without CapEff has none.
  static Capabilities parse(std::string_view status);
  static Capabilities of_self(const Sysroot& sysroot = Sysroot());

  bool has(int capability) const { return effective_ >> capability & 1; }
  // "CAP_BPF, CAP_PERFMON": those of `wanted` that are not here. CAP_SYS_ADMIN stands in for all.
  std::string missing(const std::vector<int>& wanted) const;

 private:
  uint64_t effective_ = 0;
};

std::string capability_name(int capability);

// "unavailable: <what>: <errno text> (missing CAP_BPF)": `err` is positive; `detail`, when not
// empty, is what libbpf or the verifier said.
std::string unavailable_reason(std::string_view what, int err, std::string_view detail,
                               const Capabilities& capabilities);

}  // namespace tierpilot
