// How an attempt's end becomes the task's fate: success, failure, cancellation, or another try.
#pragma once

#include <string>

#include "base/clock.h"
#include "coordinator/model.h"

namespace tierpilot {

enum class Fate { kSucceeded, kFailed, kCancelled, kAgain };

struct Verdict {
  Fate fate;
  std::string reason;  // empty on success
  bool counts = true;  // of another try: that this one was one of the task's own
  bool node_lost = false;
};

// What a node reports as its own fault, and what it ended for reasons of its own, does not count as
// a try. `stale_data`: a dataset changed after the task was assigned, so a failure to serve it is
// nobody's fault and does not count as a try.
Verdict judge(const Task& task, const TaskExit& exit, uint32_t max_attempts, bool stale_data);

// Tries that counted, with this one.
uint32_t counted_tries(const Task& task);

// A fault that may be a node's is not counted so often: a task may bring its nodes down itself.
// That it gave its share up for another one is nobody's fault.
bool may_forgive(const Task& task);

// The node was lost, or forgot the attempt, and cannot be running it any more. Of a rank the gang
// decides.
Verdict judge_lost(const Task& task, const std::string& why, uint32_t max_attempts);

// When it was, by the coordinator's clock: its node may have had nobody to tell it to.
int64_t ended_ms(const Clock& clock, const Task& task, const TaskExit& exit);
// At the latest.
int64_t started_by_exit_ms(const Clock& clock, const Task& task, const TaskExit& exit);

}  // namespace tierpilot
