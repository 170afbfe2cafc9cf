#pragma once

#include <cstdint>
#include <vector>

#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {

// Until all have ended, or `timeout_ms` has passed (negative: never). Prints the tasks; kExitFailed
// when one did not succeed, kTimeout when some have not ended.
Result<int> wait_for_tasks(Context& context, ClusterConnection& connection,
                           std::vector<uint64_t> ids, int64_t timeout_ms);

}  // namespace tierpilot::tierctl
