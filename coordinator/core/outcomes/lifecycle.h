// The life of accepted tasks: given to a node, run, ended or tried again. Every step that somebody
// is told about is on disk first. Event loop thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/data/write_copies.h"
#include "coordinator/core/outcomes/publication.h"
#include "coordinator/core/outcomes/task_end.h"
#include "coordinator/core/outcomes/task_writes.h"

namespace tierpilot {

class Lifecycle {
 public:
  using Durable = TaskWrites::Durable;

  struct Hooks {
    std::function<void()> work_available;         // something may be dispatched now
    std::function<void(uint64_t task_id)> ended;  // durably
    std::function<void(AttemptId, const ServedData&)> served;
    std::function<void(AttemptId, bool succeeded)> attempt_ended;
    // Of gangs, see coordinator/core/gangs/gang_life.h.
    std::function<void(Task& rank)> rank_started{};
    std::function<void(Task& rank, const Verdict&)> rank_over{};  // nothing of it runs any more
    std::function<void(Task& gang, const std::string& why)> stop_gang{};
    std::function<void(const Task&)> job_started{};  // elastic, or with a share of a unit
    // Of one with a share of a unit: an attempt is over.
    std::function<void(const Task&, bool succeeded)> share_ended{};
  };

  Lifecycle(ClusterState& state, Hooks hooks)
      : state_(state),
        hooks_(std::move(hooks)),
        publication_(state),
        writes_(state, publication_, [this](uint64_t task) { hooks_.ended(task); }) {}

  // Ends a task that has not ended; `done` once that is on disk or, for one that a node holds, once
  // the node has been asked to end it.
  void cancel(uint64_t id, Durable done);

  // Its node has stopped the attempt's processes where they are, or let them go on. Shown as the
  // reason of a running task; nothing when it does not run any more.
  void paused(AttemptId attempt, bool paused, Durable done);

  // What nodes report. An attempt that is not the current one is told to stop and otherwise
  // ignored.
  void started(const std::string& node, AttemptId attempt, int32_t pid = 0,
               const std::vector<uint32_t>& cpu_units = {});
  void served(const std::string& node, AttemptId attempt, const ServedData& data);
  void exited(const std::string& node, AttemptId attempt, TaskExit exit, Durable durable);

  // A node is back (or new) and holds just these attempts. `same`: the daemon that was told of
  // those it does not name, and so never heard of them.
  void reconcile(NodeRecord& node, const std::set<AttemptId>& live, bool same);
  // Nothing runs on the node any more: its lease has passed, or it is a new instance.
  void give_up(NodeRecord& node, const std::string& why);

  // A node has this version, which no dataset names. A task that had written it, and waits for its
  // next try because that seemed lost, need not be tried again.
  void found(const std::string& node, const DatasetVersion& what);

  // Now and then: a later coordinator need not adopt any more, once what was found is on disk, and
  // nothing runs that is to end before others begin.
  void end_adopting();

  // All its ranks run.
  void gang_started(Task& gang);
  // Nothing of it runs any more, of a gang no rank: what becomes of it. Ranks end with their gang,
  // unless it is tried again.
  void finish(Task& task, Verdict verdict, Durable durable,
              std::optional<int64_t> ended_ms = std::nullopt);  // else it is now

  // The dispatcher's choice did not reach the disk.
  void unassign(Task& task, const std::string& why);
  void unassign_rank(Task& rank, uint32_t attempt_before);
  // The node refused the task: kInvalid is the task's own fault, and its end; else it is tried
  // again.
  void refused(const std::string& node, AttemptId attempt, const Error& error);
  // The node was never told of the attempt, and will not be.
  void take_back(const std::string& node, AttemptId attempt, const std::string& why);

  // Ends whose data is to be on several nodes count once it is, from now on; those of before a
  // restart go on waiting. `copies` must live as long.
  void resume_copies(WriteCopies& copies);
  // It is, or never will be.
  void copied(uint64_t id);

  TaskWrites& writes() { return writes_; }
  // Until the current version is on disk the one before it is all there is after a crash.
  bool needs_older_version(const std::string& dataset) const {
    return publication_.needs_older_version(dataset);
  }

 private:
  // The task if `attempt` is its current one and it is with `node`.
  Task* current(const std::string& node, AttemptId attempt);
  void superseded(const std::string& node, AttemptId attempt, const TaskExit& exit,
                  Durable durable);
  // After a restore: an attempt that the store does not know of goes on where it is.
  bool adopt(NodeRecord& node, AttemptId attempt);
  void detach(Task& task, bool succeeded);
  // A rank is over, and waits for what its gang makes of it.
  void park(Task& rank, const Verdict& verdict, Durable durable);
  // Its processes have ended, and their node has it no more.
  void wait_for_copies(Task& task, Durable durable);
  void conclude(Task& task, Verdict verdict, Durable durable,
                std::optional<int64_t> ended_ms = std::nullopt);

  ClusterState& state_;
  Hooks hooks_;
  Publication publication_;
  WriteCopies* copies_ = nullptr;
  TaskWrites writes_;
};

}  // namespace tierpilot
