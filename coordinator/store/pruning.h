// Forgetting ended tasks, a bounded piece at a time, so that no commit waits for it. Tasks stand by
// rising id, and a submit's stand together: what is old is at the front, without an index for it.
#pragma once

#include <cstdint>

#include "coordinator/store/db.h"

namespace tierpilot::records {

// Where a round of pruning is.
struct PruneRound {
  int64_t finished_before_ms = 0;
  // Look on behind the first task that was submitted too late; else the round ends there. What
  // stands behind it is younger, unless the wall clock was set.
  bool to_the_end = false;

  uint64_t after = 0;       // tasks up to this one have been looked at
  uint64_t submission = 0;  // is being forgotten: all its tasks have ended in time
};

// Forgets at most `most_tasks` tasks, with their decisions, rewards and receipts. A submit goes
// only when all its tasks have ended in time, and its receipt goes first, so that none points at
// tasks that are gone. The last submit stays, so that its ids are not used again. False: the round
// is done. Within a transaction; when that is undone, `round` has to be, too.
Result<bool> prune(Db& db, PruneRound& round, uint64_t most_tasks);

}  // namespace tierpilot::records
