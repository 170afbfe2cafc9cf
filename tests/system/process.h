// Real processes under test: started in sessions of their own, gone when the test is gone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tierpilot::test {

using Argv = std::vector<std::string>;

// Far beyond what any step needs on a loaded machine: only a hang reaches it.
inline constexpr std::chrono::seconds kPatience{60};

// Polls `ready` until it is true; false after `patience`.
template <class Ready>
bool eventually(Ready ready, std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// A program of this build, by the environment variable that the build sets; throws without it.
std::string program(const char* variable);

std::string read_text(const std::filesystem::path& path);

// Whether a process lives: neither gone nor a zombie.
bool is_alive(pid_t pid);

// SIGKILL to a process that somebody told of. False: it told of none (0 would be this very test's
// process group), or that is gone.
bool kill_told(pid_t pid);

class Process {
 public:
  Process() = default;
  // Output is appended to `log`. Throws std::system_error where no process can be made.
  Process(const Argv& argv, const std::filesystem::path& log);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();  // SIGKILL, and waits

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;
  void kill_now();
  // SIGTERM, and SIGKILL where that does not help.
  void end();
  // The wait status once it has ended; nothing when it has not within the patience.
  std::optional<int> wait(std::chrono::milliseconds patience = kPatience);

 private:
  pid_t pid_ = -1;
};

struct Outcome {
  int code = -1;  // exit code; 128 + the signal that ended it
  std::string out, err;
};

// Runs a command to its end, or kills it after `patience`. `env` is added to this process's own.
Outcome run_command(const Argv& argv, const std::map<std::string, std::string>& env = {},
                    std::chrono::milliseconds patience = kPatience);

}  // namespace tierpilot::test
