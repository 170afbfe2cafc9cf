// Programs of others that the daemon starts beside tasks: one that is asked something and answers,
// and one that stays.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tierpilot {

struct HelperCall {
  std::string program;  // a path, or a name in the PATH
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> env{};  // all that it gets
};

// Feeds it `input` and gives what it wrote to standard output, at most 1 MiB. kUnavailable: it
// cannot be started or ends with another code than 0; kTimeout: it was killed then. Blocks.
Result<std::string> ask_program(const HelperCall& call, const std::string& input,
                                int64_t timeout_ms);

struct ProgramEnd {
  int code = 0;        // 128 and more: a signal
  std::string output;  // standard output and error, the first 1 MiB
};

// A process that was killed and is still there, stuck in the kernel: it goes when that lets go.
class LeftProcess {
 public:
  LeftProcess() = default;
  explicit LeftProcess(pid_t pid) : pid_(pid) {}
  bool is_there();

 private:
  pid_t pid_ = 0;  // 0: none
};

// Runs it to its end. kUnavailable: it cannot be started; kTimeout: it was killed, as it is when
// `stop` becomes true; what could not be killed is in `left`. Blocks.
Result<ProgramEnd> run_program(const HelperCall& call, int64_t timeout_ms,
                               const std::atomic<bool>& stop, LeftProcess& left);

// The path of a program that may be run; empty: there is none of that name.
std::string find_program(const std::string& name);

// Ends the program when it goes.
class StayingProgram {
 public:
  StayingProgram() = default;
  // Its output goes to `log`. kUnavailable: it cannot be started.
  static Result<StayingProgram> start(const HelperCall& call, const std::string& log);
  StayingProgram(StayingProgram&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  StayingProgram& operator=(StayingProgram&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~StayingProgram() { end(); }

  bool is_running();
  pid_t pid() const { return pid_; }
  // SIGTERM, and SIGKILL a second later. Blocks as long.
  void end();

 private:
  pid_t pid_ = 0;  // 0: none
};

}  // namespace tierpilot
