// How a task's wish for memory tiers is carried out on this node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/memory_wish.h"
#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot::agent {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct TaskMemory {
  std::vector<int> nodes;  // NUMA nodes of the memory policy it starts with; empty: the kernel's
  bool interleave = false;
  Environment env;      // what it needs besides its own
  std::string outcome;  // for people: what the wish came to, or why to nothing; empty: no wish
};

// A wish is a preference: where it cannot be met the task runs all the same, and `outcome` says
// why.
//
// fast, slow:      the tier's nodes are preferred, and others used when these are full.
// interleave:N,N   pages go to nodes of both tiers in turn.
// heap:W1,W2       memkind's memtier library takes the place of malloc (man 7 libmemtier); programs
//                  without dynamic linker ignore it. Likewise interleave with unequal weights: the
//                  kernel knows these only for the machine, not for one task.
//
// `heap_library`: see find_heap_library(). `task_env` may preload more.
TaskMemory plan_task_memory(const MemoryWish& wish, const std::vector<PagingTier>& tiers,
                            const Result<std::string>& heap_library, const Environment& task_env);

// Path of libmemtier.so.0; kNotFound names the Debian package.
Result<std::string> find_heap_library(const Sysroot& sysroot);

}  // namespace tierpilot::agent
