#include "tests/bench/placement/child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

extern char** environ;

namespace tierpilot::bench {
namespace {

constexpr int kLoadingLimitMs = 120'000;

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const ProgramOptions& options) {
  const auto fd = make_board();
  if (!fd) return tl::unexpected(fd.error());
  auto board = map_board(fd->get());
  if (!board) return tl::unexpected(board.error());
  std::vector<std::string> words{"bench_placement",
                                 "work",
                                 std::string(program_name(options.kind)),
                                 "--bytes",
                                 std::to_string(options.bytes),
                                 "--board",
                                 std::to_string(fd->get())};
  if (options.node) words.insert(words.end(), {"--node", std::to_string(*options.node)});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int err =
      ::posix_spawn(&pid, "/proc/self/exe", nullptr, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (err != 0) return fail_errno(err, "starting the program");
  std::unique_ptr<Child> child(new Child(pid, std::move(*board)));
  for (int waited_ms = 0; !child->board().ready; ++waited_ms) {
    if (auto status = child->alive(); !status) return tl::unexpected(status.error());
    if (waited_ms >= kLoadingLimitMs)
      return fail(ErrorCode::kIo, "the program did not load its data in two minutes");
    ::usleep(1000);
  }
  return child;
}

Status Child::alive() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == 0)
    return {};
  return fail(ErrorCode::kIo, "the program ended early");
}

Child::~Child() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace tierpilot::bench
