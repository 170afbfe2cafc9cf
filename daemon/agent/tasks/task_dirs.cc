#include "daemon/agent/tasks/task_dirs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "daemon/exec/options.h"
#include "daemon/exec/users/belongings.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kHoleBytes = 64 * 1024;
constexpr size_t kFilesAtOnce = 1'024;  // by a sweep, on the loop that keeps the lease

struct Found {
  AttemptId attempt;
  fs::path path;
  int64_t modified_ms = 0;
};

std::vector<Found> ended_oldest_first(const fs::path& root, const std::set<AttemptId>& held) {
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    auto attempt = parse_attempt(it->path().filename().native());
    if (!attempt || held.contains(*attempt)) continue;
    struct stat st;
    if (::lstat(it->path().c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
    found.push_back(
        {*attempt, it->path(), st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1'000'000});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.modified_ms < b.modified_ms; });
  return found;
}

std::vector<fs::path> set_aside_before(const fs::path& root) {
  std::vector<fs::path> aside;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    std::string_view name = it->path().filename().native();
    if (!name.starts_with(kRemovedPrefix)) continue;
    name.remove_prefix(kRemovedPrefix.size());
    struct stat st;
    if (parse_attempt(name) && ::lstat(it->path().c_str(), &st) == 0 && S_ISDIR(st.st_mode))
      aside.push_back(it->path());
  }
  return aside;
}

}  // namespace

Result<TaskDirs> TaskDirs::open(const fs::path& work_dir, Limits limits) {
  const auto root = work_dir / "tasks";
  std::error_code error;
  fs::create_directories(root, error);
  if (error)
    return fail_errno(error.value(),
                      fmt::format("task directory {} cannot be made", root.native()));
  return TaskDirs(root, limits);
}

fs::path TaskDirs::path_of(AttemptId attempt) const {
  return root_ / to_string(attempt);
}

Result<fs::path> TaskDirs::make(AttemptId attempt, unsigned mode) const {
  const auto path = path_of(attempt);
  std::error_code error;
  if (!upkeep_->remover.set_aside(path)) fs::remove_all(path, error);
  upkeep_->sizes.forget(path);
  // By chmod: the umask must not keep the task out.
  if (error || ::mkdir(path.c_str(), 0700) != 0 || ::chmod(path.c_str(), mode) != 0)
    return fail_errno(error ? error.value() : errno,
                      fmt::format("task directory {} cannot be made", path.native()));
  return path;
}

Result<fs::path> TaskDirs::create(AttemptId attempt) const {
  return make(attempt, 0700);
}

Result<fs::path> TaskDirs::create_for_other(AttemptId attempt) {
  auto path = make(attempt, 0711);
  if (!path) return path;
  const auto open_fresh = [&](const char* name) {
    constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    return UniqueFd(::open((*path / name).c_str(), kFlags, 0600));
  };
  Logs logs{open_fresh(kLogNames[0]), open_fresh(kLogNames[1])};
  if (!logs.out || !logs.err || ::mkdir((*path / kWorkFolder).c_str(), 0700) != 0)
    return fail_errno(errno, fmt::format("task directory {} cannot be filled", path->native()));
  logs_.insert_or_assign(attempt, std::move(logs));
  return path;
}

UniqueFd TaskDirs::open_log(AttemptId attempt, std::string_view stream, int flags) const {
  if (const auto open = logs_.find(attempt); open != logs_.end()) {
    const auto& log = stream == "stdout" ? open->second.out : open->second.err;
    return UniqueFd(::fcntl(log.get(), F_DUPFD_CLOEXEC, 0));
  }
  // The task may own this directory and may have put a link or a pipe there.
  const auto path = path_of(attempt) / fmt::format("{}.log", stream);
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

void TaskDirs::mark_ended(AttemptId attempt) {
  logs_.erase(attempt);
  ::utimensat(AT_FDCWD, path_of(attempt).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Result<LogChunk> TaskDirs::read_log(AttemptId attempt, std::string_view stream, uint64_t offset,
                                    uint32_t max_bytes) const {
  if (stream != "stdout" && stream != "stderr")
    return fail(ErrorCode::kInvalid,
                fmt::format("log stream '{}': must be stdout or stderr", stream));
  const auto path = path_of(attempt) / fmt::format("{}.log", stream);
  const UniqueFd fd = open_log(attempt, stream, O_RDONLY);
  if (!fd) {
    if (errno == ENOENT)
      return fail(ErrorCode::kNotFound, fmt::format("task {} attempt {}: no {} log on this node",
                                                    attempt.task, attempt.attempt, stream));
    return fail_errno(errno, fmt::format("log {} cannot be opened", path.native()));
  }
  struct stat st;
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return fail(ErrorCode::kConflict, fmt::format("log {} is not a file", path.native()));
  const auto size = static_cast<uint64_t>(st.st_size);
  LogChunk chunk;
  if (offset >= size) {
    chunk.end = true;
    return chunk;
  }
  // Where the file system tells no holes from data, what was dropped reads as zeros.
  if (const off_t data = ::lseek(fd.get(), static_cast<off_t>(offset), SEEK_DATA);
      data > static_cast<off_t>(offset)) {
    chunk.dropped = static_cast<uint64_t>(data) - offset;
    offset = static_cast<uint64_t>(data);
  }
  chunk.data.resize(std::min<uint64_t>(std::min(max_bytes, kMaxLogChunkBytes), size - offset));
  const ssize_t got =
      ::pread(fd.get(), chunk.data.data(), chunk.data.size(), static_cast<off_t>(offset));
  if (got < 0) return fail_errno(errno, fmt::format("log {} cannot be read", path.native()));
  chunk.data.resize(static_cast<size_t>(got));
  chunk.end = offset + chunk.data.size() >= size;
  return chunk;
}

void TaskDirs::bound_logs(AttemptId attempt, uint64_t keep_bytes) const {
  for (const char* stream : {"stdout", "stderr"}) {
    const auto path = path_of(attempt) / fmt::format("{}.log", stream);
    struct stat st;
    if (::lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    // Half as much again before anything is done: a hole costs more than a look.
    if (static_cast<uint64_t>(st.st_blocks) * 512 < keep_bytes + keep_bytes / 2) continue;
    const auto size = static_cast<uint64_t>(st.st_size);
    const auto from = (size - std::min(size, keep_bytes)) / kHoleBytes * kHoleBytes;
    const UniqueFd fd = open_log(attempt, stream, O_WRONLY);
    if (!fd || from == 0) continue;
    if (::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    static_cast<off_t>(from)) != 0)
      spdlog::warn("log {} cannot be bounded: {}", path.native(), std::strerror(errno));
  }
}

int64_t TaskDirs::newest_ms() const {
  const auto found = ended_oldest_first(root_, {});
  return found.empty() ? 0 : found.back().modified_ms;
}

size_t TaskDirs::sweep(const std::set<AttemptId>& held, int64_t now_ms) const {
  for (const auto& aside : set_aside_before(root_)) upkeep_->remover.finish(aside);
  size_t files_at_once = kFilesAtOnce;
  const auto bytes_of = [&](const Found& dir) {
    return upkeep_->sizes.of(dir.path, files_at_once).value_or(0);
  };
  const auto found = ended_oldest_first(root_, held);
  uint64_t total = 0;
  for (const auto& dir : found) total += bytes_of(dir);
  size_t removed = 0;
  for (const auto& dir : found) {
    const bool old = now_ms - dir.modified_ms > limits_.keep_s * 1000;
    // A user still has something of it, which the next daemon clears away.
    if ((!old && total <= limits_.keep_bytes) || user_left(dir.path)) continue;
    // What is not measured yet counts for nothing, and goes by its age only.
    const uint64_t bytes = bytes_of(dir);
    if (!old && bytes == 0) continue;
    upkeep_->remover.remove(dir.path);
    upkeep_->sizes.forget(dir.path);
    total -= bytes;
    ++removed;
  }
  return removed;
}

}  // namespace tierpilot::agent
