#include "coordinator/core/decisions/handover.h"

#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

void hand_over(ClusterState& state, Lifecycle& lifecycle, const Assignment& assignment,
               const std::string& name, const std::function<void()>& refused) {
  auto* node = state.registry.find(name);
  // Away: when it comes back it says that it does not hold the attempt, or its lease ends.
  if (!node || !node->link) return;
  // Closed while the decision was on its way to the disk.
  if (node->is_closed())
    return lifecycle.take_back(name, assignment.attempt, node->closed_because());
  node->link->start(assignment, [&lifecycle, attempt = assignment.attempt, name,
                                 refused](Result<uint16_t> taken) {
    if (taken || taken.error().code == ErrorCode::kUnreachable) return;
    lifecycle.refused(name, attempt, taken.error());
    refused();
  });
  // A cancel that came while the assignment was on its way to the disk found nothing on the node.
  const auto* task = state.tasks.find(assignment.attempt.task);
  if (task && task->cancel_asked) node->link->cancel(assignment.attempt, "cancelled");
}

}  // namespace

void hand_over_once_written(ClusterState& state, Lifecycle& lifecycle,
                            std::shared_ptr<const Assignment> assignment,
                            std::shared_ptr<const std::pair<Task, DecisionRecord>> decided,
                            std::function<void()> refused) {
  state.store.write(
      [decided](Db& db) -> Status {
        const auto& used = decided->first.data_versions;
        if (auto there = records::need_versions(db, used); !there) return there;
        if (auto ended = records::need_ends(db, decided->first.parents); !ended) return ended;
        if (auto put = records::update_task(db, decided->first); !put) return put;
        return records::put_decision(db, decided->second);
      },
      [&state, &lifecycle, assignment, decided, refused = std::move(refused)](Status status) {
        auto* written = state.tasks.find(assignment->attempt.task);
        const bool still = written && written->state == TaskState::kAssigned &&
                           written->attempt == assignment->attempt.attempt;
        if (!still) return;
        if (!status) return lifecycle.unassign(*written, status.error().message);
        hand_over(state, lifecycle, *assignment, decided->first.node, refused);
      });
}

}  // namespace tierpilot
