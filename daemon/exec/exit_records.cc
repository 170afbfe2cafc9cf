#include "daemon/exec/exit_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>

#include "base/files/write_all.h"
#include "base/unique_fd.h"
#include "daemon/exec/messages.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRecordBytes = 64 * 1024;

fs::path folder(const std::string& task_root) {
  return fs::path(task_root) / ".exits";
}

std::string name_of(uint64_t task_id, uint32_t attempt) {
  return fmt::format("{}-{}", task_id, attempt);
}

std::optional<ProcessExit> read_record(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  std::vector<uint8_t> bytes(kMaxRecordBytes);
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got <= 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(got));
  auto message = decode(bytes);
  auto* exit = message ? std::get_if<ProcessExit>(&*message) : nullptr;
  if (!exit || name_of(exit->task_id, exit->attempt) != path.filename()) return std::nullopt;
  return std::move(*exit);
}

}  // namespace

Status keep_exit(const std::string& task_root, const ProcessExit& exit) {
  const auto bytes = encode(exit);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto directory = folder(task_root);
  const auto path = directory / name_of(exit.task_id, exit.attempt);
  const std::string what = fmt::format("record of an exit {}", path.native());
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(errno, what);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(errno, what);
  const std::string_view record(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (auto written = write_all(fd.get(), record, path); !written) return written;
  if (::fsync(fd.get()) != 0) return fail_errno(errno, what);
  UniqueFd listing(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listing || ::fsync(listing.get()) != 0) return fail_errno(errno, what);
  return {};
}

std::vector<ProcessExit> kept_exits(const std::string& task_root) {
  std::vector<ProcessExit> exits;
  std::vector<fs::path> others;
  std::error_code error;
  for (fs::directory_iterator it(folder(task_root), error), end; !error && it != end;
       it.increment(error)) {
    if (auto exit = read_record(it->path()))
      exits.push_back(std::move(*exit));
    else
      others.push_back(it->path());
  }
  for (const auto& path : others) {
    spdlog::warn("{} is no whole record of a task's end: it is dropped", path.native());
    fs::remove_all(path, error);
  }
  std::sort(exits.begin(), exits.end(), [](const ProcessExit& a, const ProcessExit& b) {
    return std::tie(a.task_id, a.attempt) < std::tie(b.task_id, b.attempt);
  });
  return exits;
}

std::optional<ProcessExit> kept_exit(const std::string& task_root, uint64_t task_id,
                                     uint32_t attempt) {
  return read_record(folder(task_root) / name_of(task_id, attempt));
}

void drop_exit(const std::string& task_root, uint64_t task_id, uint32_t attempt) {
  ::unlink((folder(task_root) / name_of(task_id, attempt)).c_str());
}

}  // namespace tierpilot
