// Whether tests run in the forms that take long: tools/check --long.
#pragma once

#include <cstdlib>

namespace tierpilot::test {

inline bool long_form() {
  return std::getenv("TIERPILOT_TEST_LONG") != nullptr;
}

}  // namespace tierpilot::test
