// A bar on a terminal, drawn over itself; nothing elsewhere.
#pragma once

#include <cstdio>
#include <string>

#include "base/clock.h"

namespace tierpilot::lab {

class ProgressBar {
 public:
  ProgressBar(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  // Always true: a simulation goes on.
  bool show(double share);
  void clear();

 private:
  std::FILE* out_;
  const bool terminal_;
  const int64_t begin_ns_ = system_clock().boot_ns();
  int64_t shown_ns_ = 0;
};

}  // namespace tierpilot::lab
