#include "daemon/exec/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>

#include "base/sysroot.h"
#include "daemon/exec/process_tree.h"

namespace tierpilot {
namespace {

void close_all_but(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : keep) {
    if (fd < 0) continue;
    const auto kept = static_cast<unsigned>(fd);
    if (kept > next) ::close_range(next, kept - 1, 0);
    next = kept + 1;
  }
  ::close_range(next, ~0U, 0);
}

void silence_standard_streams() {
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return;
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(null.get(), STDOUT_FILENO);
}

}  // namespace

std::optional<std::vector<pid_t>> children_of_self() {
  const auto text = Sysroot().read("/proc/thread-self/children");
  if (!text && text.error().code != ErrorCode::kNotFound) return std::nullopt;
  if (!text) return children_from_stat(::getpid());
  std::istringstream list(*text);
  std::vector<pid_t> children;
  for (pid_t child; list >> child;) children.push_back(child);
  return children;
}

Result<UniqueFd> become_minder(std::string_view name, std::vector<int> keep) {
  close_all_but(std::move(keep));
  silence_standard_streams();
  ::prctl(PR_SET_NAME, std::string(name).c_str());
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return fail_errno(errno, "PR_SET_CHILD_SUBREAPER");
  sigset_t signals;
  ::sigfillset(&signals);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  // Ignored, it would let the kernel reap children before their end could be seen.
  ::signal(SIGCHLD, SIG_DFL);
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  ::sigaddset(&signals, SIGUSR1);
  UniqueFd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd) return fail_errno(errno, "signalfd");
  return signal_fd;
}

bool wait_readable(int fd, int timeout_ms) {
  pollfd wait{fd, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace tierpilot
