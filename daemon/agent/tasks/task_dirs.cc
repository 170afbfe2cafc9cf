#include "daemon/agent/tasks/task_dirs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "daemon/exec/options.h"
#include "daemon/exec/users/belongings.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kHoleBytes = 64 * 1024;

struct Found {
  fs::path path;
  int64_t modified_ns = 0;

  int64_t modified_ms() const { return modified_ns / 1'000'000; }
};

std::optional<int64_t> folder_modified_ns(const fs::path& path) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return std::nullopt;
  return st.st_mtim.tv_sec * 1'000'000'000L + st.st_mtim.tv_nsec;
}

// Looks at the folders alone, never at what is in them: there may be millions of files.
std::vector<Found> ended_oldest_first(const fs::path& root, const std::set<AttemptId>& held) {
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    auto attempt = parse_attempt(it->path().filename().native());
    if (!attempt || held.contains(*attempt)) continue;
    if (const auto modified_ns = folder_modified_ns(it->path()))
      found.push_back({it->path(), *modified_ns});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.modified_ns < b.modified_ns; });
  return found;
}

std::vector<fs::path> left_half_removed(const fs::path& root) {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().native().starts_with(kRemovedPrefix) &&
        folder_modified_ns(it->path()) && !user_left(it->path()))
      left.push_back(it->path());
  return left;
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
  remover_->remove(path);
  // Somebody may have removed it. What it lies in the daemon has locked: that is not made anew.
  if (::mkdir(root_.c_str(), 0777) == 0)
    spdlog::warn("task directory {} was gone: it is made anew", root_.native());
  // By chmod: the umask must not keep the task out.
  if (::mkdir(path.c_str(), 0700) != 0 || ::chmod(path.c_str(), mode) != 0)
    return fail_errno(errno, fmt::format("task directory {} cannot be made", path.native()));
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
  const off_t data = ::lseek(fd.get(), static_cast<off_t>(offset), SEEK_DATA);
  const bool only_hole = data < 0 && errno == ENXIO;  // to its end, which tasks set as they like
  if (only_hole || data > static_cast<off_t>(offset)) {
    chunk.dropped = (only_hole ? size : static_cast<uint64_t>(data)) - offset;
    offset += chunk.dropped;
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
  return found.empty() ? 0 : found.back().modified_ms();
}

size_t TaskDirs::sweep(const std::set<AttemptId>& held, int64_t now_ms) const {
  for (const auto& path : left_half_removed(root_)) remover_->finish(path);
  const auto found = ended_oldest_first(root_, held);
  std::vector<TreeSizes::Tree> trees;
  for (const auto& dir : found) trees.push_back({dir.path, dir.modified_ns});
  const auto sizes = sizes_->of(trees);
  // At least this: what is not measured yet does not count, and takes no other one with it.
  uint64_t total = 0;
  for (const auto& bytes : sizes) total += bytes.value_or(0);
  size_t removed = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool old = now_ms - found[i].modified_ms() > limits_.keep_s * 1000;
    // A user still has something of it, which the next daemon clears away.
    if ((!old && total <= limits_.keep_bytes) || user_left(found[i].path)) continue;
    if (!remover_->remove(found[i].path)) continue;
    total -= sizes[i].value_or(0);
    ++removed;
  }
  return removed;
}

}  // namespace tierpilot::agent
