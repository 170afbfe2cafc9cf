#include "tools/demo/daemon_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/unique_fd.h"

namespace tierpilot::demo {
namespace {

constexpr size_t kShownLines = 15;
constexpr std::streamoff kTailBytes = 8192;

// Only calls that are safe between fork and exec.
[[noreturn]] void exec_daemon(char* const* argv, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(argv[0], argv);
  dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

}  // namespace

Result<DaemonProcess> DaemonProcess::start(std::string name, const std::vector<std::string>& argv,
                                           const std::filesystem::path& log) {
  const UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return fail_errno(errno, fmt::format("log '{}'", log.string()));
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno(errno, fmt::format("{} cannot be started", name));
  if (pid == 0) exec_daemon(words.data(), file.get(), parent);
  return DaemonProcess(std::move(name), pid, log);
}

Status DaemonProcess::check() {
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) != pid_) return {};
  pid_ = -1;
  return tl::unexpected(
      with_log({ErrorCode::kUnavailable, fmt::format("{} {}", name_, describe(status))}));
}

Error DaemonProcess::with_log(Error error) const {
  error.message += fmt::format("; the end of its log:\n{}", last_lines(log_, kShownLines));
  return error;
}

std::string last_lines(const std::filesystem::path& path, size_t lines) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  std::string text(static_cast<size_t>(std::min(size, kTailBytes)), '\0');
  file.seekg(size - static_cast<std::streamoff>(text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  while (text.ends_with('\n')) text.pop_back();
  size_t start = text.size();
  for (size_t i = 0; i < lines && start != std::string::npos && start > 0; ++i)
    start = text.rfind('\n', start - 1);
  return start == std::string::npos || start == 0 ? text : text.substr(start + 1);
}

}  // namespace tierpilot::demo
