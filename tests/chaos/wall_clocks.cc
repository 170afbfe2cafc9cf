#include "tests/chaos/wall_clocks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/unique_fd.h"

namespace tierpilot::chaos {

std::optional<std::string> WallClocks::unavailable() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "the sanitizer has to be the first library";
#else
  const char* library = std::getenv("TIERPILOT_TEST_WALL_CLOCK");
  if (library && ::access(library, R_OK) == 0) return std::nullopt;
  return "TIERPILOT_TEST_WALL_CLOCK names no library";
#endif
}

WallClocks::WallClocks(int nodes) : folder_("/tmp") {
  for (int process = -1; process < nodes; ++process) set(process, 0);
}

void WallClocks::arrange(test::ClusterOptions& options) {
  options.prefix = [this, before = options.prefix](int process) {
    test::Argv words = before ? before(process) : test::Argv{};
    words.insert(words.end(),
                 {"/usr/bin/env", "LD_PRELOAD=" + test::program("TIERPILOT_TEST_WALL_CLOCK"),
                  "TIERPILOT_TEST_CLOCK=" + file(process).string()});
    return words;
  };
}

// In place: it is mapped.
void WallClocks::set(int process, int64_t ahead_s) {
  const UniqueFd fd(::open(file(process).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (::pwrite(fd.get(), &ahead_s, sizeof ahead_s, 0) != sizeof ahead_s)
    throw std::system_error(errno, std::generic_category(), file(process).string());
}

std::filesystem::path WallClocks::file(int process) const {
  return folder_.path() / std::to_string(process);
}

}  // namespace tierpilot::chaos
