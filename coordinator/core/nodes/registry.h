// The nodes: what they are, what they have given away, and until when their lease holds.
// Event loop thread only.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coordinator/core/nodes/node_health.h"
#include "coordinator/core/nodes/node_link.h"
#include "coordinator/model.h"
#include "model/node_order.h"
#include "policies/interface/values.h"
#include "policies/scheduling/room.h"
#include "policies/scheduling/work_rate.h"

namespace tierpilot {

// What decisions need of a node's registration.
struct NodeFacts {
  std::string name;
  uint64_t instance = 0;
  uint32_t units = 0;
  uint64_t memory_bytes = 0;
  uint64_t fast_budget_bytes = 0;
  std::string data_address;
  double int32_to_float = 1;  // float operations that one int32 operation costs, as measured
  NodeRates rates;            // of its tiers; what only tasks can show is in WorkRate
  // Instances that had the same work folder, on this machine since it was booted: the lock on that
  // folder tells that nothing of them runs any more.
  std::vector<uint64_t> predecessors;
  std::vector<std::string> gpus{};  // by UUID
  bool takes_checkpoints = true;    // older programs do not know of them
  bool runs_gangs = true;           // older programs would start a rank as a task of its own
  uint32_t cpus = 0;                // its units are dealt out over; 0: not told
  struct SharedUnit {
    std::string type;
    double cores = 1;
    uint64_t memory_bytes = 0;
    std::string gpu{};  // UUID; empty: a group of cores

    Engine engine() const { return gpu.empty() ? Engine::kCpu : Engine::kGpu; }
  };
  std::vector<SharedUnit> shared_units{};  // beside `units` and `gpus`

  bool shares_gpu(std::string_view uuid) const {
    return std::any_of(shared_units.begin(), shared_units.end(),
                       [&](const SharedUnit& unit) { return unit.gpu == uuid && !uuid.empty(); });
  }
  double cores_per_unit() const {
    return units > 0 && cpus > 0 ? static_cast<double>(cpus) / units : 1;
  }
};

// expected: known from the store after a restart; its tasks may still run there.
enum class NodeLife { kExpected, kUp, kLost };
const char* node_life_name(NodeLife life);

struct NodeRecord {
  NodeFacts facts;
  NodeLife life = NodeLife::kUp;
  uint32_t slot = 0;               // a number for good; the published network's output
  std::shared_ptr<NodeLink> link;  // empty while disconnected
  int64_t lease_end_ns = 0;        // boot time; the node's tasks are dead after it
  uint64_t fast_free_bytes = 0;
  uint64_t slow_free_bytes = 0;
  uint64_t tasks_done = 0;
  std::set<AttemptId> held;         // attempts assigned to it or running on it
  std::set<uint64_t> being_copied;  // tasks that ended here, and whose data others are to have
  uint32_t assigned_units = 0;
  uint32_t running_units = 0;
  double assigned_operations = 0;     // of the held attempts, for each unit they take
  uint64_t assigned_fetch_bytes = 0;  // that held attempts wait for in fast memory
  WorkRate operations;                // of one unit, over the tasks that ran here
  WorkRate fetches;                   // from other nodes
  NodeHealth health;
  NodeOrder order;
  std::string takes_none;   // why, as the node says; empty: it takes tasks
  uint64_t last_event = 0;  // the highest number of those that its daemon has told

  // What was not acknowledged is told again after a reconnect.
  bool is_news(uint64_t sequence) {
    if (sequence <= last_event) return false;
    last_event = sequence;
    return true;
  }
  NodeRates rates() const;
  // An attempt of `task` is given to it, has its data, ends. `operations` is what each unit does.
  void count(Task& task, double operations, uint64_t fetch_bytes);
  void count_served(Task& task);
  void uncount(Task& task);
  // Of its own or of its backlog.
  bool has_units(uint32_t backlog_units, uint32_t wanted = 1) const {
    return has_units_left(assigned_units, facts.units, backlog_units, wanted);
  }
  bool can_be_asked() const { return life == NodeLife::kUp && link != nullptr; }
  // Tasks that need it to go on.
  size_t tasks_left() const { return held.size() + being_copied.size(); }
  // Why it gets no tasks, or only some; empty: it gets them as they come.
  std::string closed_because() const;
  bool is_closed() const {
    return order.kind != NodeOrder::Kind::kNone || !takes_none.empty() || health.paused();
  }
  // The task may be given to it, as far as it is not a question of room.
  bool takes(uint64_t task) const {
    return can_be_asked() && !is_closed() && !health.keeps_off(task) &&
           (!health.on_trial() || held.empty());
  }
};

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

// The shapes of some nodes, without those that another one of them holds: mostly one or two.
class NodeShapes {
 public:
  void add(const NodeShape& shape);
  bool empty() const { return shapes_.empty(); }
  // One of the nodes has all of it.
  bool hold(const NodeShape& needed) const;
  // The most that any has of each; no node may have all of it.
  NodeShape largest() const;

 private:
  std::vector<NodeShape> shapes_;
};
NodeShape shape_of(const NodeFacts& facts);

class Registry {
 public:
  // Against names without end. The published network has outputs for the first 128 only.
  static constexpr uint32_t kMaxNodes = 16384;

  // Gives a known name its slot back. kExhausted when all slots are taken.
  Result<NodeRecord*> add(const NodeFacts& facts);
  // A slot remembered from before a restart.
  void remember_slot(const std::string& name, uint32_t slot);
  // Every node that ever joined, also those that are away.
  std::vector<std::string> known_names() const;
  bool is_known(const std::string& name) const { return slots_.contains(name); }
  // False after a restart until all that are known have joined: what is larger than the others
  // may fit one of them.
  bool knows_all_shapes() const;
  // Of the node with this slot; "" for none.
  std::string name_of(uint32_t slot) const;
  // A node that tasks were left on when the coordinator stopped.
  NodeRecord& expect(const std::string& name, uint64_t instance, int64_t lease_end_ns);

  // Units and attempts of a node are changed here only, so that the sums below cost nothing.
  void assign(NodeRecord& node, AttemptId attempt, uint32_t units);
  void run(NodeRecord& node, uint32_t units);
  // A task has run there: each of its units has done so many operations, as it says, in so long.
  void ran(NodeRecord& node, double operations, double seconds);
  // False: the node did not have the attempt.
  bool release(NodeRecord& node, AttemptId attempt, uint32_t units, bool running);
  void set_life(NodeRecord& node, NodeLife life);
  // What NodeRecord::is_closed() says has changed.
  void look_who_is_open() { look_who_is_up(); }
  // Also for a node that is away.
  void set_order(const std::string& name, const NodeOrder& order);
  // Forgets a node that is not up; what was decided with it in view may still look at it.
  void remove(const std::string& name);

  NodeRecord* find(const std::string& name);
  const NodeRecord* find(const std::string& name) const;
  std::map<std::string, NodeRecord>& all() { return nodes_; }
  const std::map<std::string, NodeRecord>& all() const { return nodes_; }

  const NodeShapes& known_shapes() const { return summary().known_shapes; }
  const NodeShapes& up_shapes() const { return summary().up_shapes; }
  // Those that are up, by slot.
  const std::vector<const NodeRecord*>& up() const { return summary().up; }
  // `backlog_units`: that a node takes beyond its own.
  const NodesBySpeed& up_by_speed(uint32_t backlog_units) const;
  uint32_t busy_units() const { return summary().busy_units; }
  uint32_t total_units() const { return summary().total_units; }
  uint32_t up_count() const { return static_cast<uint32_t>(up().size()); }
  // The mean measured cost of an int32 operation; 1 without nodes.
  double int32_to_float() const {
    return up().empty() ? 1 : summary().int32_to_float / static_cast<double>(up().size());
  }

 private:
  // Of all nodes. Looked up anew, when somebody asks, after a node came, went, opened or closed.
  struct Summary {
    std::vector<const NodeRecord*> up;
    uint32_t busy_units = 0;
    uint32_t total_units = 0;
    double int32_to_float = 0;
    NodeShapes known_shapes;
    NodeShapes up_shapes;
  };
  const Summary& summary() const;
  void forget_slot(const std::string& name);
  void look_who_is_up();
  bool has_room(const NodeRecord& node) const { return node.has_units(ordered_for_.value_or(0)); }
  // Changes what the orders by speed and load are made of.
  template <class Change>
  void change_place(NodeRecord& node, Change change);

  mutable std::optional<Summary> summary_;
  mutable NodesBySpeed up_by_speed_;             // kept in order once somebody has asked for it
  mutable std::optional<uint32_t> ordered_for_;  // backlog units
  std::map<std::string, NodeRecord> nodes_;
  std::map<std::string, uint32_t> slots_;
  std::map<uint32_t, std::string> names_;  // by slot
  uint32_t lowest_free_ = 0;               // every slot below it is taken
  std::map<std::string, NodeOrder> orders_;
  std::deque<std::map<std::string, NodeRecord>::node_type> removed_;  // the last ones
};

}  // namespace tierpilot
