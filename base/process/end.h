// The end of a program that uses libtorch, whose static objects take a quarter of a second to
// destroy.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tierpilot {

// As a return from main(), without destructors of static objects and without what is registered
// with atexit(): not for who swaps (swap/libtorch keeps plans there). What the program itself has
// to tidy up it has tidied up. Under sanitizers they run: leaks are looked for after them.
[[noreturn]] inline void end_process(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::exit(status);
#else
  std::fflush(nullptr);
  std::quick_exit(status);
#endif
}

}  // namespace tierpilot
