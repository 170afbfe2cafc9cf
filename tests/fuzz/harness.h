// A harness hands one parser bytes from anybody, and holds it to what it promises of them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tierpilot::fuzz {

struct Harness {
  using Run = void (*)(std::string_view bytes);
  Harness(const char* named, Run runs);
  const char* name;
  Run run;
  const Harness* next;
};

// For parsers that take a file: what is there until the next call has these bytes.
std::string file_of(std::string_view bytes);

// Ends the program, so that the input is kept, where a promise does not hold.
inline void promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace tierpilot::fuzz

#define FUZZ(named)                                                            \
  static void fuzz_##named(std::string_view bytes);                            \
  static const tierpilot::fuzz::Harness harness_##named(#named, fuzz_##named); \
  static void fuzz_##named([[maybe_unused]] std::string_view bytes)
