#include "daemon/exec/lifeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

namespace tierpilot {

Result<UniqueFd> lock_task_root(const std::string& task_root, int64_t patience_ms) {
  std::error_code error;
  std::filesystem::create_directories(task_root, error);
  if (error) return fail_errno(error.value(), fmt::format("task root '{}'", task_root));
  const std::string path = task_root + "/.executor.lock";
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(errno, path);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(errno, path);
    if (std::chrono::steady_clock::now() >= end)
      return fail(ErrorCode::kConflict,
                  fmt::format("task root '{}': another daemon, or a task of an earlier one, still "
                              "runs there; `fuser {}` names it",
                              task_root, path));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return lock;
}

}  // namespace tierpilot
