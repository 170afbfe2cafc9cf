// What one small input may cost.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

namespace tierpilot::fuzz {

// While it lives: over ten seconds end the program. The memory limit holds from the first on.
class InputLimits {
 public:
  InputLimits(const char* harness, const std::string& file) {
    std::snprintf(told(), kTold, "%s: %s\n", harness, file.c_str());
    signal(SIGALRM, [](int) { tell("took too long: "), _exit(1); });
    signal(SIGABRT, [](int) { tell("ended by: "); });
    alarm(kMostSeconds);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const rlimit memory{kMostBytes, kMostBytes};
    setrlimit(RLIMIT_DATA, &memory);
#endif
  }
  ~InputLimits() {
    alarm(0);
  }
  InputLimits(const InputLimits&) = delete;
  InputLimits& operator=(const InputLimits&) = delete;

 private:
  static constexpr unsigned kMostSeconds = 10;
  static constexpr rlim_t kMostBytes = rlim_t{1} << 30;
  static constexpr size_t kTold = 512;
  static char* told() {
    static char text[kTold];
    return text;
  }
  static void tell(std::string_view how) {
    [[maybe_unused]] auto wrote = write(STDERR_FILENO, how.data(), how.size());
    wrote = write(STDERR_FILENO, told(), std::char_traits<char>::length(told()));
  }
};

}  // namespace tierpilot::fuzz
