#include "daemon/exec/lifeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

namespace tierpilot {
namespace {

std::string lock_in(const std::string& folder) {
  return folder + "/.executor.lock";
}

Result<UniqueFd> open_lock(const std::string& path) {
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(errno, path);
  return lock;
}

// Whether it was free within that time.
Result<bool> try_to_lock(const UniqueFd& lock, const std::string& path, int64_t patience_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(errno, path);
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// Into the lock, for those that find it taken.
Status write_holder(const UniqueFd& lock, const std::string& path, const std::string& task_root) {
  const auto text = fmt::format("process {} with tasks in '{}'", ::getpid(), task_root);
  if (::ftruncate(lock.get(), 0) == 0 &&
      ::pwrite(lock.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    return {};
  return fail_errno(errno, path);
}

std::string holder(const UniqueFd& lock) {
  char text[1024];
  const auto size = ::pread(lock.get(), text, sizeof text, 0);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "which says nothing of itself";
}

}  // namespace

std::vector<int> Lifeline::fds_and(int other) const {
  std::vector<int> fds{other, pipe.get()};
  for (const auto& lock : locks) fds.push_back(lock.get());
  return fds;
}

Result<UniqueFd> lock_task_root(const std::string& task_root, int64_t patience_ms) {
  std::error_code error;
  std::filesystem::create_directories(task_root, error);
  if (error) return fail_errno(error.value(), fmt::format("task root '{}'", task_root));
  const auto path = lock_in(task_root);
  auto lock = open_lock(path);
  if (!lock) return lock;
  const auto locked = try_to_lock(*lock, path, patience_ms);
  if (!locked) return tl::unexpected(locked.error());
  if (!*locked)
    return fail(ErrorCode::kConflict,
                fmt::format("task root '{}': another daemon, or a task of an earlier one, still "
                            "runs there; `fuser {}` names it",
                            task_root, path));
  return lock;
}

Result<UniqueFd> lock_folder_root(const std::string& folder_root, const std::string& task_root,
                                  int64_t patience_ms) {
  const auto path = lock_in(folder_root);
  auto lock = open_lock(path);
  if (!lock) return lock;
  const auto locked = try_to_lock(*lock, path, patience_ms);
  if (!locked) return tl::unexpected(locked.error());
  if (!*locked)
    return fail(ErrorCode::kConflict,
                fmt::format("folder '{}' for swapping is another daemon's, or of tasks that it "
                            "left: {}; `fuser {}` names who holds it; give one of the two daemons "
                            "another node.name, or another directory in [swap]",
                            folder_root, holder(*lock), path));
  if (auto written = write_holder(*lock, path, task_root); !written)
    return tl::unexpected(written.error());
  return lock;
}

}  // namespace tierpilot
