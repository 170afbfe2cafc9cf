// What a simulated cluster consists of: plain values, read from a file or made by a trace reader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/resources.h"
#include "policies/scheduling/service_order.h"

namespace tierpilot::sim {

// A node's memory tiers. The defaults are those of a virtual machine with a directory as slow tier.
struct TierSpeeds {
  double fast_latency_ns = 100;
  double fast_read_bytes_per_s = 10e9;
  double fast_copy_bytes_per_s = 4e9;  // a writer's private copy of what is in fast memory
  double promote_bytes_per_s = 1.5e9;  // slow tier to fast tier
  double evict_bytes_per_s = 1e9;      // fast tier to slow tier
  // What each promotion or write-back takes beside its bytes: files are made, synced, named.
  double promote_start_s = 0;
  double evict_start_s = 0;
  // What has left the fast tier is freed, at this rate; 0: in no time.
  double free_bytes_per_s = 0;
};

// What a transfer takes of a core, where cores are shared: copying 4 MiB from a file whose pages
// were dropped took 3.6 ms of one in 6.5 to 8.7 ms.
inline constexpr double kCoresOfTransfer = 0.5;

// Exponential times between failures and of repairs; 0 between failures: it never fails.
struct FailureRate {
  double mean_between_s = 0;
  double mean_repair_s = 3600;
};

// Nodes that are alike.
struct NodeGroup {
  std::string name = "node";
  uint32_t count = 1;
  uint32_t units = 1;             // compute units
  double operations_per_s = 1e9;  // of one unit
  uint64_t memory_bytes = UINT64_MAX;
  uint64_t fast_budget_bytes = 1ULL << 30;
  uint64_t slow_budget_bytes = 1ULL << 40;
  // True: the slow tier is memory, promotion and eviction are moves. False: it is a directory, and
  // what is promoted keeps its slow copy.
  bool exclusive_tiers = false;
  uint32_t movers = 2;   // transfers at a time, as pool.workers
  uint32_t readers = 2;  // other nodes that read from one at a time, as pool.readers
  TierSpeeds tiers;
  double link_bytes_per_s = 1.25e9;  // each way, shared by what is under way
  double link_latency_s = 100e-6;    // of each fetch
  double launch_s = 2e-3;            // from free units until the task's own work begins
  // The group's nodes are processes of one machine with so many cores; 0: each has its own.
  double shared_cores = 0;
  // Of them the coordinator and the daemons take so much for each task, beside its launch and its
  // transfers: a third each when it is decided, starts and has ended, which are written and told.
  double handling_core_s = 0;
  uint32_t gpus = 0;  // of each node, at most 64
  std::string gpu_type;
  FailureRate node_failures;
  FailureRate gpu_failures;  // of each GPU

  // Of each node.
  Resources resources() const { return {units, gpus, memory_bytes, fast_budget_bytes}; }
};

struct CoordinatorSpec {
  uint32_t backlog_units = 2;  // as queue.backlog_units
  uint32_t considered_nodes =
      128;  // of a large cluster that a decision looks at, as policy.considered_nodes
  ServiceOrder service_order = ServiceOrder::kShortest;  // as queue.order
  bool hold_tasks = true;                                // as policy.hold
  uint32_t max_attempts = 3;                             // as queue.max_attempts
  double gang_patience_s = 30;  // then others behind a gang wait with it, as gang.patience_s
  double lease_s = 10;          // from a node's failure until its tasks are queued again
  double accept_s = 2.5e-3;     // from submit until a task can be dispatched: a durable write
  double dispatch_s = 3e-3;  // from the decision until the node has the task: a durable write, RPC
  double report_s = 0.5e-3;  // from an event on a node until the coordinator knows
};

// After a failure others follow in the same group: each failure brings another one with this
// probability, after an exponential time.
struct FailureClusters {
  double probability = 0;
  double mean_delay_s = 600;
};

struct Checkpoints {
  double interval_s = 0;  // of work between two; 0: a restarted task begins anew
  double cost_s = 0;      // of each
  double restart_s = 0;   // added to a restarted task's work
};

struct ClusterSpec {
  std::string name;
  std::vector<NodeGroup> groups;
  CoordinatorSpec coordinator;
  FailureClusters failure_clusters;
  Checkpoints checkpoints;

  uint32_t node_count() const;
  uint64_t unit_count() const;
};

// Names every wrong value and unknown key with its line. Relative names of tier files are relative
// to the file's folder.
Result<ClusterSpec> read_cluster_spec(const std::filesystem::path& path);
Result<ClusterSpec> parse_cluster_spec(std::string_view toml, std::string origin,
                                       const std::filesystem::path& folder);

// The speeds that `tiertool tier show -j` has written, of the fastest tier and the one below it.
// kInvalid names the file and what it lacks.
Result<TierSpeeds> read_tier_speeds(const std::filesystem::path& path);

}  // namespace tierpilot::sim
