// Whether tests run in the forms that take long: tools/check --long.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace tierpilot::test {

inline bool long_form() {
  return std::getenv("TIERPILOT_TEST_LONG") != nullptr;
}

// How many of what is alike: seeds, rows, rounds.
inline uint64_t few_or(uint64_t few, uint64_t many) {
  return long_form() ? many : few;
}

}  // namespace tierpilot::test
