// How much of the machine others used while something was measured.
#pragma once

#include <cstdint>
#include <optional>

#include "base/sysroot.h"
#include "daemon/probe/loops/estimate.h"

namespace tierpilot {

// Watches from construction on. CPU time of this process and of children it has reaped meanwhile is
// its own; the rest of what /proc/stat counts as busy or stolen is others'.
class Interference {
 public:
  explicit Interference(Sysroot sysroot = Sysroot());
  Surroundings surroundings() const;

 private:
  struct Ticks {
    uint64_t busy = 0;  // with stolen ones
    uint64_t all = 0;
  };
  std::optional<Ticks> read_ticks() const;

  Sysroot sysroot_;
  double load_1min_ = 0;
  std::optional<Ticks> ticks_;
  double own_cpu_s_ = 0;
};

}  // namespace tierpilot
