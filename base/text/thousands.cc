#include "base/text/thousands.h"

#include <algorithm>
#include <cstddef>

namespace tierpilot {

std::string with_thousands(std::string digits) {
  const size_t sign = digits.starts_with('-');
  const size_t point = std::min(digits.find('.'), digits.size());
  for (size_t at = point; at > sign + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace tierpilot
