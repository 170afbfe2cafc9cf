// A figure that is measured of decisions. It has bounds, so that means can be compared at any time.
#pragma once

#include <string>

namespace tierpilot {

struct BoundedMeasure {
  std::string name;
  double low = 0;
  double high = 1;
  bool larger_is_better = true;
};

}  // namespace tierpilot
