// What Cap'n Proto 0.9 leaves to C++20 and newer clangs do not find; given to each file by
// tests/fuzz/run.
#pragma once

#if __cplusplus >= 202000L
#include <kj/string.h>

namespace kj {

inline bool operator==(const char* one, const StringPtr& other) {
  return other == one;
}
inline bool operator!=(const char* one, const StringPtr& other) {
  return other != one;
}

}  // namespace kj
#endif
