// Jobs while they run: a line each, with its loss as a sparkline and its cores as a bar.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/demo/quality/allocator_run.h"

namespace tierpilot::demo {

// Eight heights, the newest value last; values that are not finite are blanks.
std::string sparkline(const std::vector<double>& values, size_t width);
std::string core_bar(double cores, double most, size_t width);

// On a terminal it is drawn over itself; elsewhere a line now and then.
class QualityView {
 public:
  QualityView(std::ostream& out, bool terminal, double cores)
      : out_(out), terminal_(terminal), cores_(cores) {}
  void begin(const std::string& allocator);
  void show(double since_s, const std::vector<JobNow>& jobs);

 private:
  std::ostream& out_;
  const bool terminal_;
  const double cores_;
  std::string allocator_;
  size_t lines_ = 0;  // that stand there already
  double next_s_ = 0;
};

}  // namespace tierpilot::demo
