// What every benchmark's main() does.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace tierpilot::bench {

// The exit status; 1 with the error on stderr where `run` throws.
inline int run_main(int argc, char** argv, int (*run)(int argc, char** argv)) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

}  // namespace tierpilot::bench
