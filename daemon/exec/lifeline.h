// What the warden and its supervisors hold open until nothing of their tasks is left.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot {

struct Lifeline {
  UniqueFd pipe;  // its other end, the executor's, then reads end-of-file
  // Of the task root and the folder roots, until when no other executor starts there.
  std::vector<UniqueFd> locks{};

  std::vector<int> fds_and(int other) const;
};

// Locks <task_root>/.executor.lock, making the directory when absent. Tasks of a daemon that was
// killed are being ended meanwhile: waits at most `patience_ms` for that, then kConflict.
Result<UniqueFd> lock_task_root(const std::string& task_root, int64_t patience_ms);
// The same in a folder root, which has to be there. kConflict says who holds it.
Result<UniqueFd> lock_folder_root(const std::string& folder_root, const std::string& task_root,
                                  int64_t patience_ms);

}  // namespace tierpilot
