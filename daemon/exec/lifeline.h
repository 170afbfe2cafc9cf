// What the warden and its supervisors hold open until nothing of their tasks is left.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot {

struct Lifeline {
  UniqueFd pipe;  // its other end, the executor's, then reads end-of-file
  UniqueFd lock;  // of the task root, until when no other executor starts there; may be absent
};

// Locks <task_root>/.executor.lock, making the directory when absent. Tasks of a daemon that was
// killed are being ended meanwhile: waits at most `patience_ms` for that, then kConflict.
Result<UniqueFd> lock_task_root(const std::string& task_root, int64_t patience_ms);

}  // namespace tierpilot
