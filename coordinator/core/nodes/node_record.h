// A node as the coordinator knows it. Event loop thread only.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/core/nodes/node_health.h"
#include "coordinator/core/nodes/node_link.h"
#include "coordinator/model.h"
#include "model/node_order.h"
#include "model/resources.h"
#include "policies/interface/values.h"
#include "policies/scheduling/room.h"
#include "policies/scheduling/work_rate.h"
#include "policies/sharing/gpu_features.h"

namespace tierpilot {

// What decisions need of a node's registration.
struct NodeFacts {
  std::string name;
  uint64_t instance = 0;
  uint32_t units = 0;
  uint64_t memory_bytes = 0;
  uint64_t fast_budget_bytes = 0;
  std::string data_address;
  double int32_to_float = 1;     // float operations that one int32 operation costs, as measured
  double float32_ops_per_s = 0;  // of a core, as measured; 0: not known
  NodeRates rates;               // of its tiers; what only tasks can show is in WorkRate
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
    std::string gpu{};                // UUID; empty: a group of cores
    sharing::GpuFeatures gpu_kind{};  // of it

    Engine engine() const { return gpu.empty() ? Engine::kCpu : Engine::kGpu; }
  };
  std::vector<SharedUnit> shared_units{};  // beside `units` and `gpus`
  uint64_t swap_room_bytes = 0;            // of the tiers that programs swap to
  uint64_t largest_write_bytes = 0;        // to one dataset, that it could keep; 0: not told

  // With nothing else on it.
  Resources resources() const {
    return {units, static_cast<uint32_t>(gpus.size()), memory_bytes, fast_budget_bytes,
            swap_room_bytes};
  }
  // That a task with a share of it can have there.
  Resources resources_of(const SharedUnit& unit) const {
    return {.memory_bytes = unit.memory_bytes, .swap_room_bytes = swap_room_bytes};
  }
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
constexpr const char* kStoppedNode = "stopped";

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
  uint64_t assigned_swap_bytes = 0;   // that held attempts may fill
  double assigned_operations = 0;     // of the held attempts, for each unit they take
  uint64_t assigned_fetch_bytes = 0;  // that held attempts wait for in fast memory
  WorkRate operations;                // of one unit, over the tasks that ran here
  WorkRate fetches;                   // from other nodes
  NodeHealth health;
  NodeOrder order;
  std::string takes_none;  // why, as the node says; empty: it takes tasks
  bool has_left = false;   // its daemon said that it ends, and no other has joined since
  bool was_lost = false;   // since it joined last, which is noted for operators
  // What it holds; of one with more than fits its registration the rest follows.
  bool has_told_all = true;

  // As it is shown.
  const char* life_name() const {
    return has_left && life == NodeLife::kLost ? kStoppedNode : node_life_name(life);
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
  // Of it nothing is promised twice: what swaps cannot wait for what others have there.
  bool has_swap_room(uint64_t wanted_bytes) const {
    return idle_resources().swap_room_bytes >= wanted_bytes;
  }
  // But for units and room for swapping that are given: memory and GPUs are counted where they are
  // given.
  Resources idle_resources() const {
    auto idle = facts.resources();
    idle.units -= std::min(idle.units, assigned_units);
    idle.swap_room_bytes -= std::min(idle.swap_room_bytes, assigned_swap_bytes);
    return idle;
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

}  // namespace tierpilot
