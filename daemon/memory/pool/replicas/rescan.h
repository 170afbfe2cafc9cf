// What an earlier run left in the tiers' folders.
#pragma once

#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/pool_room.h"

namespace tierpilot {

// Blocks. Enters complete replicas and makes room where budgets are smaller than they were. Errors
// as of TierStore::scan().
Status rescan(Holdings& holdings, PoolRoom& room);

}  // namespace tierpilot
