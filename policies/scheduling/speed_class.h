// Nodes whose units are about as fast. A part of a large cluster that stands for the whole has to
// hold some of each class: the idle ones are mostly the slow ones, which nobody wants.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace tierpilot {

// The octave of what a unit was measured to do; all that nobody has measured are one class.
inline int speed_class(double operations_per_s) {
  if (!(operations_per_s > 0) || !std::isfinite(operations_per_s))
    return std::numeric_limits<int>::min();
  return std::ilogb(operations_per_s);
}

// Of what is left, for the first of the classes that are left.
inline size_t fair_share(size_t left, size_t classes) {
  return (left + classes - 1) / classes;
}

}  // namespace tierpilot
