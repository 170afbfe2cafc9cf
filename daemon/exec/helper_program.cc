#include "daemon/exec/helper_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

#include "base/unique_fd.h"

namespace tierpilot {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
constexpr size_t kMostOutput = 1 << 20;
constexpr milliseconds kPollStep{10};
constexpr int kLookMs = 50;                 // whether it is to stop
constexpr std::chrono::seconds kKilled{1};  // and dead by then, unless it is stuck in the kernel

struct Files {
  int in, out;
};

// Dies with nobody: who starts it has to end it.
Result<pid_t> spawn(const HelperCall& call, Files files) {
  std::vector<std::string> words{call.program}, variables;
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  for (const auto& [name, value] : call.env) variables.push_back(name + '=' + value);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (auto& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  auto argv = pointers(words), env = pointers(variables);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, files.in, 0);
  ::posix_spawn_file_actions_adddup2(&actions, files.out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, files.out, 2);
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, call.program.c_str(), &actions, &attributes, argv.data(), env.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail_errno(error, "cannot start " + call.program);
  return pid;
}

// Until then, unless somebody stops it before.
struct Patience {
  steady_clock::time_point deadline;
  const std::atomic<bool>& stop;

  bool is_over() const { return stop || steady_clock::now() >= deadline; }
};

// Nothing: it has not ended by then.
std::optional<int> wait_for(pid_t pid, const Patience& patience) {
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) != pid) {
    if (patience.is_over()) return std::nullopt;
    std::this_thread::sleep_for(kPollStep);
  }
  return status;
}

// Writes the input and reads the output until it has ended; nothing: the time is over. What it
// leaves behind may keep the output open, and is not waited for.
std::optional<int> converse(pid_t pid, UniqueFd in, UniqueFd out, const std::string& input,
                            std::string& output, const Patience& patience) {
  size_t written = 0;
  std::array<char, 4096> buffer;
  std::optional<int> ended;
  while (true) {
    if (written == input.size()) in.reset();
    if (int status = 0; !ended && ::waitpid(pid, &status, WNOHANG) == pid) ended = status;
    if (!ended && patience.is_over()) return std::nullopt;
    pollfd files[] = {{out.get(), POLLIN, 0}, {in.get(), POLLOUT, 0}};
    ::poll(files, in ? 2 : 1, ended ? 0 : kLookMs);
    if (in && files[1].revents != 0) {
      const ssize_t n =
          ::send(in.get(), input.data() + written, input.size() - written, MSG_NOSIGNAL);
      // It has ended without reading it all: what it wrote before is still there.
      written = n > 0 ? written + static_cast<size_t>(n) : input.size();
    }
    if (ended && (files[0].revents == 0 || output.size() >= kMostOutput)) return ended;
    if (files[0].revents == 0) continue;
    const ssize_t n = ::read(out.get(), buffer.data(), buffer.size());
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
      return ended ? ended : wait_for(pid, patience);
    if (n > 0 && output.size() < kMostOutput) output.append(buffer.data(), static_cast<size_t>(n));
  }
}

const std::atomic<bool> kNobodyStops = false;

// False: it is not gone a second later.
bool kill_all(pid_t pid) {
  ::kill(-pid, SIGKILL);
  return wait_for(pid, {steady_clock::now() + kKilled, kNobodyStops}).has_value();
}

Result<ProgramEnd> run(const HelperCall& call, const std::string& input, const Patience& patience,
                       LeftProcess& left) {
  int in[2], out[2];
  // No pipe: writing to one whose reader has ended would be a signal.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
    return fail_errno(errno, "socketpair");
  UniqueFd in_read(in[0]), in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  UniqueFd out_read(out[0]), out_write(out[1]);
  ::fcntl(in_write.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
  const auto pid = spawn(call, {in_read.get(), out_write.get()});
  if (!pid) return tl::unexpected(pid.error());
  in_read.reset();
  out_write.reset();
  ProgramEnd end;
  const auto status =
      converse(*pid, std::move(in_write), std::move(out_read), input, end.output, patience);
  if (!status) {
    if (!kill_all(*pid)) left = LeftProcess(*pid);
    return fail(ErrorCode::kTimeout, call.program + " did not answer in time");
  }
  ::kill(-*pid, SIGKILL);  // what it left behind
  end.code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  return end;
}

}  // namespace

Result<std::string> ask_program(const HelperCall& call, const std::string& input,
                                int64_t timeout_ms) {
  LeftProcess left;
  const Patience patience{steady_clock::now() + milliseconds(timeout_ms), kNobodyStops};
  auto end = run(call, input, patience, left);
  if (!end && end.error().code == ErrorCode::kTimeout)
    return fail(ErrorCode::kTimeout,
                fmt::format("{} did not answer within {} ms", call.program, timeout_ms));
  if (!end) return tl::unexpected(end.error());
  if (end->code != 0)
    return fail(ErrorCode::kUnavailable,
                fmt::format("{} failed: {}", call.program,
                            end->output.empty() ? "it said nothing" : end->output.substr(0, 300)));
  return std::move(end->output);
}

Result<ProgramEnd> run_program(const HelperCall& call, int64_t timeout_ms,
                               const std::atomic<bool>& stop, LeftProcess& left) {
  return run(call, "", {steady_clock::now() + milliseconds(timeout_ms), stop}, left);
}

bool LeftProcess::is_there() {
  if (pid_ != 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = 0;
  return pid_ != 0;
}

std::string find_program(const std::string& name) {
  const auto runs = [](const std::string& path) { return ::access(path.c_str(), X_OK) == 0; };
  if (name.find('/') != name.npos) return runs(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && runs(folder + '/' + name)) return folder + '/' + name;
  return {};
}

Result<StayingProgram> StayingProgram::start(const HelperCall& call, const std::string& log) {
  UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  UniqueFd file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_errno(errno, log);
  const auto pid = spawn(call, {nothing.get(), file.get()});
  if (!pid) return tl::unexpected(pid.error());
  StayingProgram program;
  program.pid_ = *pid;
  return program;
}

bool StayingProgram::is_running() {
  if (pid_ == 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return true;
  pid_ = 0;
  return false;
}

void StayingProgram::end() {
  const pid_t pid = std::exchange(pid_, 0);
  if (pid == 0) return;
  ::kill(-pid, SIGTERM);
  if (!wait_for(pid, {steady_clock::now() + std::chrono::seconds(1), kNobodyStops})) kill_all(pid);
}

}  // namespace tierpilot
