#include "tools/lab/guarded.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <fstream>
#include <new>

#include "base/unique_fd.h"

namespace tierpilot::lab {
namespace {

constexpr rlim_t kCpuS = 60;
constexpr rlim_t kMoreGib = 8;

void limit(int resource, rlim_t most) {
  const rlimit limits{most, most};
  setrlimit(resource, &limits);
}

// Libraries map some 10 GiB, and sanitizers terabytes, so that no fixed limit is right.
rlim_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

// "+" and the answer, or the error's code, a line end and its message.
[[noreturn]] void answer(int fd, const std::string& subject,
                         const std::function<Result<std::string>()>& work) {
  limit(RLIMIT_CPU, kCpuS);
  limit(RLIMIT_AS, mapped_bytes() + (kMoreGib << 30));
  limit(RLIMIT_CORE, 0);
  try {
    const auto result = work();
    write_all(fd, result ? "+" + *result
                         : fmt::format("{}\n{}", error_code_name(result.error().code),
                                       result.error().message));
  } catch (const std::bad_alloc&) {
    write_all(fd, fmt::format("{}\n'{}' takes more than {} GiB of memory to read: it is too large, "
                              "or broken or hostile",
                              error_code_name(ErrorCode::kExhausted), subject, kMoreGib));
  } catch (const std::exception& error) {
    write_all(fd, fmt::format("{}\n{}", error_code_name(ErrorCode::kExhausted), error.what()));
  }
  _exit(0);
}

std::string read_all(int fd) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

Result<std::string> in_guarded_child(const std::string& subject,
                                     const std::function<Result<std::string>()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return fail_errno(errno, "a pipe cannot be made");
  UniqueFd from(ends[0]), to(ends[1]);
  const pid_t child = fork();
  if (child < 0) return fail_errno(errno, "a child process cannot be started");
  if (child == 0) answer(to.get(), subject, work);
  to.reset();
  const std::string text = read_all(from.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text.empty() && text[0] == '+') return text.substr(1);
  if (const auto end = text.find('\n'); end != std::string::npos)
    return fail(error_code_from_name(text.substr(0, end)), text.substr(end + 1));
  return fail(
      ErrorCode::kInvalid,
      fmt::format("'{}' ended the process that read it ({}): it is broken or hostile", subject,
                  WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : "no answer"));
}

}  // namespace tierpilot::lab
