#include "tools/lab/guarded.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <fstream>
#include <new>

#include "base/files/write_all.h"
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

// "+" and the answer, or the error's code, a line end and its message.
std::string answer_text(const std::string& subject,
                        const std::function<Result<std::string>()>& work) {
  const auto error_text = [](ErrorCode code, std::string_view message) {
    return fmt::format("{}\n{}", error_code_name(code), message);
  };
  try {
    const auto result = work();
    return result ? "+" + *result : error_text(result.error().code, result.error().message);
  } catch (const std::bad_alloc&) {
    return error_text(ErrorCode::kExhausted,
                      fmt::format("'{}' takes more than {} GiB of memory to read: it is too "
                                  "large, or broken or hostile",
                                  subject, kMoreGib));
  } catch (const std::exception& error) {
    return error_text(ErrorCode::kExhausted, error.what());
  }
}

[[noreturn]] void answer(int fd, const std::string& subject,
                         const std::function<Result<std::string>()>& work) {
  limit(RLIMIT_CPU, kCpuS);
  limit(RLIMIT_AS, mapped_bytes() + (kMoreGib << 30));
  limit(RLIMIT_CORE, 0);
  const bool whole = write_all(fd, answer_text(subject, work), "the answer").has_value();
  _exit(whole ? 0 : 1);
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
  // What a child wrote that did not end well may be the beginning of an answer.
  const bool whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (whole && text.starts_with('+')) return text.substr(1);
  if (const auto end = text.find('\n'); whole && end != std::string::npos)
    return fail(error_code_from_name(text.substr(0, end)), text.substr(end + 1));
  return fail(
      ErrorCode::kInvalid,
      fmt::format("'{}' ended the process that read it ({}): it is broken or hostile", subject,
                  WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : "no answer"));
}

}  // namespace tierpilot::lab
