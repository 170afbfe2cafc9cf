// What has become of tasks, on its way to the store; and what nodes may forget once it is there.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/outcomes/publication.h"
#include "coordinator/core/outcomes/unwritten_ends.h"

namespace tierpilot {

class TaskWrites {
 public:
  using Durable = std::function<void(Status)>;  // called once it is on disk, or is not

  // `ended` is told of each task once its end is on disk.
  TaskWrites(ClusterState& state, Publication& publication,
             std::function<void(uint64_t task)> ended)
      : state_(state), publication_(publication), ended_(std::move(ended)) {}

  // These tasks, as they are now, with the datasets that they have published.
  void write(std::vector<uint64_t> changed, std::vector<Dataset> datasets, Durable durable);
  // Once more, for somebody who waits for the end of a task that has ended, but not on disk.
  void write_end(const Task& task, Durable durable);
  // It has started; see write_starts().
  void note_start(uint64_t task) { starts_.insert(task); }
  // One such write is under way at a time: until the next, a short task's end may come and make
  // that of its start needless.
  void write_starts();
  // Before a clean end: starts that wait behind a write go to the store as well.
  void flush_starts();
  // Tries again to write ends that could not be written.
  void retry();
  bool has_unwritten_end(uint64_t task) const { return unwritten_.has(task); }
  // The node need not remember the attempt any more.
  void release(const std::string& node, AttemptId attempt);

 private:
  void write_next_starts();
  void written(const Task& task);

  ClusterState& state_;
  Publication& publication_;
  std::function<void(uint64_t task)> ended_;
  std::set<uint64_t> starts_;  // started, and not written since
  bool writing_starts_ = false;
  UnwrittenEnds unwritten_;
};

}  // namespace tierpilot
