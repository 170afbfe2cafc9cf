// The nodes: what they are, what they have given away, and until when their lease holds.
// Event loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "coordinator/core/nodes/node_record.h"
#include "coordinator/core/nodes/node_shapes.h"
#include "coordinator/core/nodes/node_slots.h"

namespace tierpilot {

// Least load first: assigned units per unit, then the slot.
struct ByLoad {
  bool operator()(const NodeRecord* a, const NodeRecord* b) const;
};
using NodesByLoad = std::set<const NodeRecord*, ByLoad>;
struct SpeedClass {
  size_t nodes = 0;
  NodesByLoad with_room;  // those that have a unit of their backlog left
};
// The fastest first; no class is without nodes.
using NodesBySpeed = std::map<int, SpeedClass, std::greater<>>;

class Registry {
 public:
  // Looked up anew, when somebody asks, after a node came, went, opened or closed.
  struct Summary {
    std::vector<const NodeRecord*> up;  // by slot
    uint32_t busy_units = 0;            // of these, as the next ones
    uint32_t total_units = 0;
    double int32_to_float = 1;  // the mean measured cost of an int32 operation; 1 without nodes
    NodeShapes known_shapes;    // of all nodes
    NodeShapes up_shapes;       // of those that take tasks
    std::map<Engine, NodeShapes> shared_shapes;  // of all nodes: of units and what is beside them

    uint32_t up_count() const { return static_cast<uint32_t>(up.size()); }
  };

  // Gives a known name its slot back. kExhausted when all slots are taken.
  Result<NodeRecord*> add(const NodeFacts& facts);
  NodeSlots& slots() { return slots_; }
  const NodeSlots& slots() const { return slots_; }
  // False after a restart until all that are known have joined: what is larger than the others
  // may fit one of them.
  bool knows_all_shapes() const;
  // One that joined an earlier coordinator, and may have tasks of it.
  NodeRecord& expect(const std::string& name, uint64_t instance, int64_t lease_end_ns);

  // Units, room for swapping and attempts of a node are changed here only, so that the sums below
  // cost nothing.
  void assign(NodeRecord& node, AttemptId attempt, uint32_t units, uint64_t swap_room_bytes = 0);
  void run(NodeRecord& node, uint32_t units);
  // A task has run there: each of its units has done so many operations, as it says, in so long.
  void ran(NodeRecord& node, double operations, double seconds);
  // False: the node did not have the attempt.
  bool release(NodeRecord& node, AttemptId attempt, uint32_t units, bool running,
               uint64_t swap_room_bytes = 0);
  void set_life(NodeRecord& node, NodeLife life);
  // Which nodes are up, or what NodeRecord::is_closed() says of one, has changed.
  void look_anew();
  // Also for a node that is away.
  void set_order(const std::string& name, const NodeOrder& order);
  // Forgets a node that is not up; what was decided with it in view may still look at it.
  void remove(const std::string& name);

  NodeRecord* find(const std::string& name);
  const NodeRecord* find(const std::string& name) const;
  std::map<std::string, NodeRecord>& all() { return nodes_; }
  const std::map<std::string, NodeRecord>& all() const { return nodes_; }

  const Summary& summary() const;
  // Those that are up, by slot.
  const std::vector<const NodeRecord*>& up() const { return summary().up; }
  // `backlog_units`: that a node takes beyond its own.
  const NodesBySpeed& up_by_speed(uint32_t backlog_units) const;

 private:
  bool has_room(const NodeRecord& node) const { return node.has_units(ordered_for_.value_or(0)); }
  // Changes what the orders by speed and load are made of.
  template <class Change>
  void change_place(NodeRecord& node, Change change);

  mutable std::optional<Summary> summary_;
  mutable NodesBySpeed up_by_speed_;             // kept in order once somebody has asked for it
  mutable std::optional<uint32_t> ordered_for_;  // backlog units
  std::map<std::string, NodeRecord> nodes_;
  NodeSlots slots_;
  std::map<std::string, NodeOrder> orders_;
  std::deque<std::map<std::string, NodeRecord>::node_type> removed_;  // the last ones
};

}  // namespace tierpilot
