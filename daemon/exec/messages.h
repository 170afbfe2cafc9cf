// What daemon, warden and supervisors say to each other, as CBOR: one message is one datagram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "daemon/exec/task.h"

namespace tierpilot {

struct StopTask {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  int64_t grace_ms = 0;  // between SIGTERM and SIGKILL; 0: SIGKILL at once
  TaskEnd how = TaskEnd::kCancelled;
};

// Every process of the task stands still where it is, or goes on.
struct StandStill {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  bool still = true;
};

// A file of the task's working directory is opened as the task may open it.
struct OpenFile {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  uint64_t request = 0;
  std::string path;
};

// The file comes with it, unless there is a `fault`.
struct FileOpened {
  uint64_t request = 0;
  ErrorCode code = ErrorCode::kIo;
  std::string fault;
};

struct LeaseExtension {
  int64_t deadline_boot_ns = 0;
  int64_t asked_boot_ns = 0;  // when the lease was asked for, from which it counts
};

using ExecMessage = std::variant<TaskLaunch, StopTask, LeaseExtension, TaskStarted, ProcessExit,
                                 StandStill, OpenFile, FileOpened, TaskCleared>;

inline constexpr size_t kMaxMessageBytes = 256 * 1024;

// kInvalid over kMaxMessageBytes.
Result<std::vector<uint8_t>> encode(const ExecMessage& message);
// kInvalid for anything that encode() does not make.
Result<ExecMessage> decode(std::span<const uint8_t> bytes);

}  // namespace tierpilot
