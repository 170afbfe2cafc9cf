#include "tests/system/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace tierpilot::test {
namespace {

std::vector<char*> words_of(const Argv& texts) {
  std::vector<char*> words;
  for (const auto& text : texts) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  return words;
}

// Only calls that are safe between fork and exec. A dead test takes its processes along.
[[noreturn]] void exec_child(char* const* argv, char* const* env, int out, int err, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setsid();
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execve(argv[0], argv, env);
  dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

pid_t start(const Argv& argv, const Argv& env, int out, int err) {
  auto words = words_of(argv);
  auto variables = words_of(env);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) exec_child(words.data(), variables.data(), out, err, parent);
  return pid;
}

Argv own_environment() {
  Argv env;
  for (char** entry = environ; *entry; ++entry) env.emplace_back(*entry);
  return env;
}

UniqueFd scratch_file() {
  UniqueFd file(memfd_create("output", MFD_CLOEXEC));
  if (!file) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return file;
}

std::string text_of(int file) {
  std::string text;
  char chunk[65536];
  for (off_t at = 0;;) {
    const ssize_t count = pread(file, chunk, sizeof chunk, at);
    if (count <= 0) return text;
    text.append(chunk, static_cast<size_t>(count));
    at += count;
  }
}

}  // namespace

std::string program(const char* variable) {
  const char* path = std::getenv(variable);
  if (!path) throw std::runtime_error(std::string(variable) + " is not set: use meson test");
  return path;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_alive(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(") ");  // the name before it may hold anything
  return end != std::string::npos && stat[end + 2] != 'Z' && stat[end + 2] != 'X';
}

Process::Process(const Argv& argv, const std::filesystem::path& log) {
  const UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) throw std::system_error(errno, std::generic_category(), log.string());
  pid_ = start(argv, own_environment(), file.get(), file.get());
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  kill_now();
  pid_ = std::exchange(other.pid_, -1);
  return *this;
}

bool kill_told(pid_t pid) {
  return pid > 0 && ::kill(pid, SIGKILL) == 0;
}

Process::~Process() {
  kill_now();
}

bool Process::running() {
  if (pid_ < 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

void Process::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

void Process::kill_now() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Process::end() {
  signal(SIGCONT);
  signal(SIGTERM);
  if (!wait(std::chrono::seconds(20))) kill_now();
}

std::optional<int> Process::wait(std::chrono::milliseconds patience) {
  int status = 0;
  if (pid_ < 0) return std::nullopt;
  if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, patience))
    return std::nullopt;
  pid_ = -1;
  return status;
}

Outcome run_command(const Argv& argv, const std::map<std::string, std::string>& env,
                    std::chrono::milliseconds patience) {
  auto variables = own_environment();
  for (const auto& [name, value] : env) variables.push_back(name + "=" + value);
  const UniqueFd out = scratch_file(), err = scratch_file();
  const pid_t pid = start(argv, variables, out.get(), err.get());
  int status = 0;
  if (!eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; }, patience)) {
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, text_of(out.get()), text_of(err.get())};
}

}  // namespace tierpilot::test
