// What has become of tasks, on its way to the store; and what nodes may forget once it is there.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  // Once more, for somebody who waits for the end of a task that has ended, but not on disk. With
  // all such ends: of one without those that it brought about a restart would make something else.
  void write_ends(Durable durable);
  // It has started, say, and nobody waits for that to be on disk; see write_noted().
  void note(uint64_t task) { noted_.insert(task); }
  // It was found on a node after a restore.
  void note_adopted(const Task& task);
  bool has_unwritten_adoption() const { return !adopted_.empty(); }
  // One such write is under way at a time: until the next, a short task's end may come and make
  // that of its start needless.
  void write_noted();
  // Before a clean end: what waits behind a write goes to the store as well.
  void flush_noted();
  // Tries again to write what could not be written.
  void retry();
  bool has_unwritten_end(uint64_t task) const { return unwritten_.has(task); }
  // The node need not remember the attempt any more.
  void release(const std::string& node, AttemptId attempt);

 private:
  void write_next_noted();
  void write_next_ends();
  // Or that they may have published.
  std::vector<Dataset> published_by(const std::vector<uint64_t>& tasks) const;
  std::map<std::string, uint64_t> reads_of(const std::vector<Task>& tasks) const;
  void written(const Task& task);
  // It was to be written without anybody who waits for it.
  void note_again(uint64_t task);

  ClusterState& state_;
  Publication& publication_;
  std::function<void(uint64_t task)> ended_;
  std::set<uint64_t> noted_;  // and not written since
  bool writing_noted_ = false;
  std::map<uint64_t, uint32_t> adopted_;  // attempts by task, until they are on disk
  UnwrittenEnds unwritten_;
  std::vector<Durable> end_waits_;  // for the next write of all ends
  bool writing_ends_ = false;
};

}  // namespace tierpilot
