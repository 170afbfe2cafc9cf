// Jobs while they share units: a line each, with its share as a bar, what was predicted beside what
// is measured, and the time left beside the promise.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/demo/sharing/sharing_run.h"

namespace tierpilot::demo {

// On a terminal it is drawn over itself; elsewhere a line now and then.
class LiveShares {
 public:
  LiveShares(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}
  void begin(const std::string& policy);
  void show(double now_s, double since_s, const std::vector<SharingJob>& jobs);

 private:
  std::ostream& out_;
  const bool terminal_;
  std::string policy_;
  size_t lines_ = 0;  // that stand there already
  double next_s_ = 0;
};

}  // namespace tierpilot::demo
