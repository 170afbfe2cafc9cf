// What was written is copied to other nodes before that counts, where a dataset is to be kept by
// several: so a node that is lost right after takes nothing along. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coordinator/core/data/copy_orders.h"

namespace tierpilot {

class WriteCopies {
  static constexpr uint64_t kAboveTasks = uint64_t{1} << 63;

 public:
  // `settled` is told of a task once: what it wrote is on as many nodes as it is to be, or on as
  // many as there are that can take it; or on none any more, see are_there().
  using Settled = std::function<void(uint64_t task)>;
  WriteCopies(ClusterState& state, CopyOrders& orders, Settled settled)
      : state_(state), orders_(orders), settled_(std::move(settled)), next_key_(kAboveTasks) {}

  // Of what the task wrote, something is to be kept by several nodes.
  static bool are_wanted(const ClusterState& state, const TaskExit& exit);
  // Of a task that was read from the store: its processes have ended, and its end did not count.
  static bool were_wanted(const ClusterState& state, const Task& task);

  // The task has ended well on its node, which holds what it wrote. Until end() that is the next
  // version, and the one before stays the current one, on all its nodes.
  void begin(const Task& task);
  // After a restart, or a loss of its node: nodes tell what they have.
  void resume(const Task& task);
  bool waits(uint64_t task) const { return waits_.contains(task); }
  std::vector<uint64_t> tasks() const;
  // Somebody who is not lost keeps each of the versions.
  bool are_there(uint64_t task) const;
  // They have become the current ones; or nothing, and who has them is told to discard them.
  void end(uint64_t task, bool published);

  // Calls `done` once the current version is on as many nodes as for a task's.
  void when_kept(const DatasetVersion& what, std::function<void()> done);
  // Several times a second.
  void tick();

 private:
  enum class Standing { kSettled, kOrdered, kUnderWay, kNobody };
  struct Wait {
    std::string node;  // of a task: where it ended
    std::vector<DatasetVersion> written;
    int64_t since_ns = 0;  // boot time; nothing was under way from then on
    uint32_t failures = 0;
    uint32_t cuts = 0;              // of connections to who was asked
    int64_t failed_ns = INT64_MIN;  // boot time of the last one, whoever's fault it was
    std::function<void()> settled;
  };
  using Waits = std::map<uint64_t, Wait>;  // by task; above all tasks those for nobody's

  // Looks at so many of them that are not under way, and goes on there the next time.
  void look_at_some(size_t most);
  // True: somebody was looked for, to copy it.
  bool look_at(uint64_t key);
  Standing look_at(const DatasetVersion& what, uint64_t key);
  void copied(uint64_t key, const DatasetVersion& what, const std::string& node,
              const Status& kept);
  // Who has it, of the next version or the current one; null: it is neither.
  CopyOrders::Holders* holders_of(const DatasetVersion& what) const;
  // One who keeps it was heard of since then.
  bool is_there(const CopyOrders::Holders& holders, int64_t since_ns) const;

  ClusterState& state_;
  CopyOrders& orders_;
  const Settled settled_;
  Waits waits_;
  uint64_t next_key_;
  uint64_t looked_at_ = 0;  // the last one
};

}  // namespace tierpilot
