// Which processes are placed, and by which rule: those of running tasks, and those that the
// configuration's rules name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/memory_wish.h"
#include "daemon/agent/paging/process_scan.h"
#include "daemon/memory/loop/paging_loop.h"
#include "daemon/memory/paging/rules.h"
#include "model/attempt.h"

namespace tierpilot::agent {

// A running task, as far as placing its memory goes.
struct PlacedTask {
  AttemptId attempt;
  pid_t pid = 0;  // of its first process
  std::string name;
  std::vector<std::string> datasets{};
  MemoryWish wish{};
};

struct PagingTarget {
  LoopTarget loop;
  uint64_t started_ticks = 0;
  uint64_t resident_bytes = 0;
};

struct TargetChoice {
  std::vector<PagingTarget> targets;  // the largest first
  std::vector<std::string> notes;     // rules that cannot be followed here, and why
};

struct TargetQuestion {
  const Sysroot& sysroot;
  const std::vector<ScannedProcess>& processes;
  const std::map<AttemptId, PlacedTask>& tasks;
  const std::vector<PagingRule>& rules;
  const std::vector<PagingTier>& tiers;
  pid_t self = 0;  // never placed
  // Smaller processes are not worth a tracker.
  uint64_t min_resident_bytes = 4 << 20;
};

// A task's processes are all that its supervisor has below it. They are placed by the first rule
// that holds, else by heat, enforced, in a group of the task's own; a wish for one tier makes them
// static there, and those of a task with a wish for several tiers are left alone. Other processes
// are placed only by a rule, and only looked at unless it says otherwise.
TargetChoice choose_targets(const TargetQuestion& question);

}  // namespace tierpilot::agent
