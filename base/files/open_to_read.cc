#include "base/files/open_to_read.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace tierpilot {
namespace {

constexpr int kTries = 100;
constexpr timespec kBetween{0, 20'000'000};

// A pipe whose writer says nothing yet is one to wait for; tee() takes nothing out of it.
bool has_writer(int pipe_fd) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return true;
  const UniqueFd from(ends[0]), to(ends[1]);
  for (int i = 0; i < kTries; ++i) {
    if (tee(pipe_fd, to.get(), 1, SPLICE_F_NONBLOCK) != 0) return true;
    nanosleep(&kBetween, nullptr);
  }
  return false;
}

std::string in_words(size_t bytes) {
  return bytes >> 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

Result<UniqueFd> open_to_read(const std::string& path, const std::string& what) {
  // Without O_NONBLOCK it would wait for who writes to a named pipe.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return fail_errno(errno, what);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return fail_errno(errno, what);
  if (S_ISFIFO(status.st_mode) && !has_writer(fd.get()))
    return fail(ErrorCode::kInvalid, what + ": it is a pipe that nobody writes to");
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return fail_errno(errno, what);
  return fd;
}

Result<std::string> read_small_file(const std::string& path, size_t most_bytes) {
  const auto what = fmt::format("'{}'", path);
  const auto fd = open_to_read(path, what + " cannot be opened");
  if (!fd) return tl::unexpected(fd.error());
  std::string text;
  char part[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd->get(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, what + " cannot be read");
    if (got == 0) return text;
    text.append(part, static_cast<size_t>(got));
    if (text.size() > most_bytes)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{} is larger than {}", what, in_words(most_bytes)));
  }
}

}  // namespace tierpilot
