// The plain values that policies work on. A policy knows no socket, clock, file or RPC, so the same
// object runs in the coordinator, in a simulation and in a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tierpilot {

struct TaskFeatures {
  double operations = 0;    // basic operations; int32 work converted to its float equivalent
  uint64_t data_bytes = 0;  // of all datasets that the task needs
  bool writes = false;      // at least one of them is opened for writing
  uint32_t units = 1;       // compute units that it occupies while it runs
  uint32_t gpu_milli = 0;   // thousandths of a GPU
};

// What a node's engines, memory and link do, as measured there; 0 where it is not known.
struct NodeRates {
  double operations_per_s = 0;     // of one unit, over the tasks that ran there
  double fast_bytes_per_s = 0;     // reading the fast tier
  double promote_bytes_per_s = 0;  // slow tier to fast tier
  double evict_bytes_per_s = 0;    // fast tier to slow tier
  double fetch_bytes_per_s = 0;    // from other nodes over the link
};

// Two cache lines, and what most policies look at is in the first: views of large clusters are made
// and read for every decision.
struct alignas(64) NodeState {
  uint32_t slot = 0;            // stable output index of this node
  bool candidate = false;       // can take the task
  bool full = false;            // could, once tasks there have ended
  uint32_t running = 0;         // compute units busy
  uint32_t assigned = 0;        // compute units of all accepted tasks, waiting ones included
  uint32_t units = 0;           // compute units there are
  uint32_t held_units = 0;      // of tasks that are kept back until it has room
  uint32_t free_gpu_milli = 0;  // in the simulator only: clusters give GPUs to gangs and shares
  uint32_t gpu_milli = 0;
  uint64_t free_fast_bytes = 0;
  uint64_t fast_budget_bytes = 0;
  uint64_t held_fast_bytes = 0;    // of this task's data
  uint64_t held_slow_bytes = 0;    // of this task's data
  double assigned_operations = 0;  // of accepted tasks that have not ended, for each unit they take
  uint64_t assigned_fetch_bytes = 0;  // to be brought into its fast tier for accepted tasks
  double held_operations = 0;         // of the tasks that are kept back, for all units
  NodeRates rates;
};
static_assert(sizeof(NodeState) == 128);

struct View {
  TaskFeatures task;
  std::vector<NodeState> nodes;
  bool may_hold = false;  // the task may be kept back for a node that is full
};

inline constexpr size_t kNoNode = SIZE_MAX;

// Why a policy's own choice cannot be had; the decision is then the fallback heuristic's.
enum class DecisionFault : uint8_t {
  kNone,
  kNoWeights,    // nothing was learned or loaded yet
  kNotFinite,    // the network gave no finite value
  kUnfamiliar,   // the weights were not trained on anything like it
  kFailed,       // an exception
  kSlow,         // not within its deadline
  kNoCandidate,  // it chose a node that cannot take the task
};
inline constexpr size_t kDecisionFaults = 7;

struct Decision {
  size_t node = kNoNode;      // index into View::nodes; kNoNode when the view has no candidate
  size_t held_for = kNoNode;  // without a node: the full one that the task is kept back for
  bool explored = false;      // chosen at random on purpose
  // The score per View node, larger is better; nullopt where the policy gave none.
  std::vector<std::optional<double>> q;
  std::string reason;
  uint64_t weights_version = 0;  // 0: no network took part
  std::vector<float> seen;       // what the network saw of the chosen node, or of the whole view
  DecisionFault fault = DecisionFault::kNone;
};

// The measured reward of a decision with its parts, all dimensionless (see reward.h).
struct RewardParts {
  double utilisation = 0;   // U in [0, 1]
  double latency_term = 0;  // 1/L in [0, 1]; 1 is as fast as local fast memory
  double penalty_term = 0;  // Rp: eviction time over the same reference
  double reward = 0;
  bool evicted = false;
};

}  // namespace tierpilot
