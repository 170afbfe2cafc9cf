#include "policies/learning/saved_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files/durable_rename.h"
#include "base/files/write_all.h"
#include "base/unique_fd.h"

namespace tierpilot {
namespace {

// A learner of the published size with full tables stays below 100 MB.
constexpr off_t kMaxFileBytes = off_t{1} << 30;

}  // namespace

Status save_bytes(const std::filesystem::path& file, std::string_view bytes, mode_t mode) {
  const std::string temporary = file.string() + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) return fail_errno(errno, fmt::format("'{}': open", temporary));
  Status status = write_all(fd.get(), bytes, fmt::format("'{}': write", temporary));
  if (status && ::fsync(fd.get()) != 0)
    status = fail_errno(errno, fmt::format("'{}': fsync", temporary));
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  fd.reset();
  return rename_durably(temporary, file);
}

Result<std::string> load_bytes(const std::filesystem::path& file) {
  const std::string name = fmt::format("'{}': ", file.string());
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return fail_errno(errno, name + "open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(errno, name + "stat");
  if (!S_ISREG(status.st_mode) || status.st_size > kMaxFileBytes)
    return fail(ErrorCode::kInvalid, name + "this is not a plain file of at most 1 GiB");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, name + "read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace tierpilot
