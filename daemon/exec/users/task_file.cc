#include "daemon/exec/users/task_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

namespace tierpilot {
namespace {

bool is_within(const std::filesystem::path& file, const std::filesystem::path& folder) {
  return file.native().starts_with(folder.native() + '/');
}

// The number of what it is mounted by, told by the kernel without asking the file system, which may
// be a task's own and never answer.
std::string mount_of(const UniqueFd& fd) {
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", fd.get()));
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("mnt_id:")) return line;
  return {};
}

}  // namespace

Result<UniqueFd> open_task_file(const std::filesystem::path& folder, const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return fail(ErrorCode::kInvalid, "its path is empty, or has a NUL byte");
  const auto what = fmt::format("'{}'", path);
  // O_NONBLOCK: a FIFO would wait for a writer.
  UniqueFd fd(::open((folder / path).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, what + " cannot be opened");
  // Of what is open now: links may have changed since.
  std::error_code error;
  const auto inside = std::filesystem::canonical(folder, error);
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd.get()), error);
  if (error || !is_within(file, inside))
    return fail(ErrorCode::kDenied,
                fmt::format("{} is outside of the job's folder {}", what, folder.native()));
  const UniqueFd at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) return fail_errno(errno, folder.native());
  if (mount_of(fd) != mount_of(at))
    return fail(
        ErrorCode::kDenied,
        fmt::format("{} is not on the file system of the job's folder {}", what, folder.native()));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, what);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kInvalid, what + " is not a regular file");
  return fd;
}

}  // namespace tierpilot
