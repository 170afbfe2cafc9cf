// What operators do with nodes: cordon, drain, open again, remove. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/outcomes/lifecycle.h"

namespace tierpilot {

class NodeAdmin {
 public:
  using Done = std::function<void(Status)>;  // called once it is on disk, or refused

  explicit NodeAdmin(ClusterState& state) : state_(state) {}

  // A drain hands back at once what has not started, and what has not ended `within_ms` from now.
  // kNotFound for a node that never joined, kConflict for one that is being removed. Nothing of it
  // holds before it is on disk.
  void order(const std::string& node, NodeOrder::Kind kind, int64_t within_ms,
             const std::string& who, Done done);
  // Forgets a node that is gone for good. kConflict while it may still run tasks, while tasks are
  // bound to it, and while it is the home of a dataset.
  void remove(const std::string& node, const std::string& who, Done done);
  // Several times a second: what drained nodes still have past their deadline is asked back.
  void tick();

 private:
  Status removable(const std::string& node) const;
  void obey(const std::string& node, const NodeOrder& order);
  void forget(const std::string& node, const std::string& who);
  void ask_back(NodeRecord& node);
  // Of a drain: boot time, so that a wall clock that is set does not matter.
  int64_t deadline_ns(const NodeRecord& node);

  ClusterState& state_;
  std::map<std::string, int64_t> deadlines_ns_;  // of drains, once they were asked for
  // Attempts that were asked back, and over which connection: one that breaks may lose it.
  std::map<AttemptId, std::weak_ptr<NodeLink>> asked_back_;
};

}  // namespace tierpilot
