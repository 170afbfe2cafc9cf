// One line that is drawn over itself on a terminal, or a plain line now and then elsewhere.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "base/clock.h"

namespace tierpilot::demo {

class Progress {
 public:
  Progress(std::ostream& out, bool terminal, const Clock& clock = system_clock())
      : out_(out), terminal_(terminal), clock_(clock) {}

  // On a terminal cut to 79 columns.
  void show(const std::string& text);
  // Leaves `text` standing.
  void done(const std::string& text);

 private:
  static constexpr int64_t kPlainIntervalMs = 5'000;

  std::ostream& out_;
  const bool terminal_;
  const Clock& clock_;
  int64_t last_ms_ = INT64_MIN;
};

}  // namespace tierpilot::demo
