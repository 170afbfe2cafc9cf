#include "daemon/probe/active/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

void write_line(int fd, std::string_view line) {
  const std::string text = std::string(line) + '\n';
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = ::write(fd, text.data() + at, text.size() - at);
    if (put < 0 && errno != EINTR) _exit(1);  // nobody listens any more
    if (put > 0) at += static_cast<size_t>(put);
  }
}

// When memory runs out, this process goes before anybody else's.
void offer_to_the_oom_killer() {
  UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score && write(score.get(), "1000", 4) < 0) return;  // then it is one among others
}

[[noreturn]] void child_main(int fd, const std::function<void(const LineSink&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  offer_to_the_oom_killer();
  try {
    work([fd](std::string_view line) { write_line(fd, line); });
  } catch (...) {
    _exit(2);
  }
  _exit(0);
}

// Splits what arrives into lines until the child closes its end. False: the deadline passed.
bool forward_lines(int fd, SteadyClock::time_point deadline, const LineSink& on_line) {
  std::string pending;
  char chunk[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) return false;
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    pending.append(chunk, static_cast<size_t>(got));
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1))
      on_line(std::string_view(pending).substr(0, end));
  }
}

int reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Status run_in_child(const std::function<void(const LineSink&)>& work,
                    std::chrono::milliseconds timeout, const LineSink& on_line) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "probe process: pipe");
  UniqueFd reader(ends[0]), writer(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return fail_errno(errno, "probe process: fork");
  if (pid == 0) child_main(writer.get(), work);
  writer.reset();
  const bool in_time = forward_lines(reader.get(), SteadyClock::now() + timeout, on_line);
  if (!in_time) kill(pid, SIGKILL);
  const int status = reap(pid);
  if (!in_time)
    return fail(ErrorCode::kTimeout,
                fmt::format("the probe process was stopped after {} ms", timeout.count()));
  if (WIFSIGNALED(status))
    return fail(ErrorCode::kIo, fmt::format("the probe process was killed by signal {} ({})",
                                            WTERMSIG(status), strsignal(WTERMSIG(status))));
  if (WEXITSTATUS(status) != 0)
    return fail(ErrorCode::kIo,
                fmt::format("the probe process ended with status {}", WEXITSTATUS(status)));
  return {};
}

}  // namespace tierpilot
