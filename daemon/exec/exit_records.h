// Ends of tasks on disk, in <task_root>/.exits: a task that has ended must not run again only
// because its daemon died before anybody had heard of the end. Supervisors write them before they
// report; the daemon drops them when the coordinator has the end for good.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/exec/task.h"

namespace tierpilot {

// Returns once it would survive a power cut.
Status keep_exit(const std::string& task_root, const ProcessExit& exit);
// All that were kept whole, by rising task and attempt. What is no record is dropped. To be called
// by whoever holds the lock on the task root, when no supervisor is left that may write.
std::vector<ProcessExit> kept_exits(const std::string& task_root);
// Of one whose supervisor is gone. Nothing: none was kept whole.
std::optional<ProcessExit> kept_exit(const std::string& task_root, uint64_t task_id,
                                     uint32_t attempt);
void drop_exit(const std::string& task_root, uint64_t task_id, uint32_t attempt);

}  // namespace tierpilot
