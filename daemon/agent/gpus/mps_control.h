// The control daemon of CUDA's Multi-Process Service for one GPU: started, asked, started again
// when it has gone, ended. Its commands are those of nvidia-cuda-mps-control(1). Calls may
// block for a few times `timeout_ms`: not for the event loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/exec/helper_program.h"

namespace tierpilot::agent {

struct MpsOptions {
  std::string program;           // nvidia-cuda-mps-control, a path
  std::string gpu;               // UUID
  std::filesystem::path folder;  // of its own; made
  int64_t timeout_ms = 5000;
};

// What its servers are in.
struct MpsState {
  std::map<int32_t, std::string> servers;  // by pid, as it says: ACTIVE, INITIALIZING, FAULT, ...
  // A client has done what took the server's GPU context along, since it was asked last.
  bool faulted = false;
  bool gone = false;  // a server that there was then, and with it who computed
};

class MpsControl {
 public:
  explicit MpsControl(MpsOptions options);
  // Ends it with its servers, if it has started it.
  ~MpsControl();
  MpsControl(const MpsControl&) = delete;

  // Starts it where it does not run. Gives whether it had to. A fault of the program, and one that
  // does not answer, is kUnavailable or kTimeout. What an earlier daemon left is ended, where it
  // hangs only if `idle`: else tasks may be clients of it.
  Result<bool> keep_running(bool idle = true);
  // One is there, this one's or that of an earlier daemon.
  bool is_there() const;
  Result<MpsState> ask();

  static std::filesystem::path pipes(const std::filesystem::path& folder) {
    return folder / "pipe";
  }
  // What clients need to find it.
  static std::vector<std::pair<std::string, std::string>> client_env(
      const std::filesystem::path& folder);

 private:
  std::vector<std::pair<std::string, std::string>> env() const;
  Result<std::string> command(const std::string& line) const;
  Status make_folders() const;
  Status end_what_is_left(bool idle) const;
  std::chrono::steady_clock::time_point after_timeout() const;
  // New lines of the servers' log that tell of a fault: a server that has recovered, or ended,
  // says nothing of it.
  bool log_tells_fault();

  const MpsOptions options_;
  StayingProgram program_;
  std::map<int32_t, std::string> known_;  // of the last state
  bool died_ = false;                     // with servers that were known
  mutable bool hangs_ = false;            // it did not answer the last command
  uintmax_t log_read_ = 0;                // bytes
};

}  // namespace tierpilot::agent
