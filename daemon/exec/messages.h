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

struct LeaseExtension {
  int64_t deadline_boot_ns = 0;
};

using ExecMessage = std::variant<TaskLaunch, StopTask, LeaseExtension, TaskStarted, ProcessExit>;

inline constexpr size_t kMaxMessageBytes = 256 * 1024;

// kInvalid over kMaxMessageBytes.
Result<std::vector<uint8_t>> encode(const ExecMessage& message);
// kInvalid for anything that encode() does not make.
Result<ExecMessage> decode(std::span<const uint8_t> bytes);

}  // namespace tierpilot
