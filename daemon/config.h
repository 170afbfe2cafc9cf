// The node daemon's configuration: one TOML file, checked whole before anything starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/paging_config.h"
#include "daemon/swap_config.h"
#include "daemon/user_config.h"

namespace tierpilot {

struct NodeConfig {
  struct Pool {
    std::filesystem::path fast_dir;
    uint64_t fast_budget_bytes = 0;
    std::optional<int> fast_node;    // NUMA node; absent: the fastest measured
    std::filesystem::path slow_dir;  // of a directory tier
    uint64_t slow_budget_bytes = 0;
    std::string slow_kind;                // auto, directory, node
    std::filesystem::path slow_node_dir;  // on tmpfs, for the slow tier's NUMA node
    std::optional<int> slow_node;         // absent: the next one by measured speed
    int workers = 2;
    int readers = 2;  // other nodes that have a turn to read here at a time
  };
  struct Probe {
    bool calibrate = true;
    bool passive = true;
    bool fault_times = false;
    double passive_cpu_share = 0;  // of one CPU, see PassiveOptions
    int rounds = 3;                // of each figure; the median counts
    int64_t timeout_ms = 0;        // for all tiers together
  };
  struct SharedGpus {
    std::vector<std::string> uuids;  // "all": every one that is there
    std::vector<int> cpus;           // that tasks with parts of GPUs run on
    std::string mps;                 // auto, always, never
    std::string mps_control;         // the program, a path or a name

    bool shares(const std::string& uuid) const {
      return std::any_of(uuids.begin(), uuids.end(),
                         [&](const auto& known) { return known == "all" || known == uuid; });
    }
  };
  // What an operator's programs say of units; see daemon/agent/units/health_checks.h.
  struct Health {
    std::vector<std::string> cpu, gpu;  // program and arguments; empty: none is asked
    int64_t period_s = 0;
    int64_t timeout_s = 0;
  };
  struct Tls {
    std::filesystem::path ca, certificate, key;  // all empty: no TLS
    std::filesystem::path crl;                   // empty: no revocation lists
  };

  std::string name;
  std::string coordinator;     // "unix:/path" or "tls:host:port"
  std::string data_listen;     // likewise
  std::string data_advertise;  // what other daemons dial; data_listen unless it says otherwise
  std::vector<int> cpus;       // that tasks run on
  uint32_t units = 0;
  std::vector<std::vector<int>> shared_units;  // that tasks have parts of: the CPUs of each
  SharedGpus shared_gpus;                      // likewise
  Health health;
  uint64_t memory_bytes = 0;  // that tasks may ask for
  std::filesystem::path work_dir;
  int64_t keep_logs_s = 0;
  uint64_t keep_logs_bytes = 0;
  uint64_t log_bytes = 0;       // of each log of a running task; the oldest go first
  int64_t cancel_grace_ms = 0;  // between SIGTERM and SIGKILL
  int64_t drain_s = 0;          // what runs may end by itself so long before the daemon stops
  std::string cgroup;           // for limits; empty: the daemon's own, where it was delegated
  Pool pool;
  std::vector<SwapTierWords> swap_tiers;  // that tasks may have room in
  Probe probe;
  PagingConfig placement;
  TaskUsersConfig task_users;
  Tls tls;
  std::string metrics_listen;  // "http:127.0.0.1:port" or "tls:host:port"; empty: off
  std::string log_level;
};

// What this machine offers, for the keys that a file leaves out.
struct MachineDefaults {
  std::string hostname;
  std::vector<int> cpus;  // this process may run on
  uint64_t memory_bytes = 0;
  std::vector<int> numa_nodes{};  // with memory; none where the kernel does not tell
};
Result<MachineDefaults> machine_defaults(const Sysroot& sysroot);

// Every wrong value and unknown key in one error, a line each, with file and line.
Result<NodeConfig> load_config(const std::filesystem::path& path, const MachineDefaults& machine);
Result<NodeConfig> read_config(ConfigReader reader, const MachineDefaults& machine);

}  // namespace tierpilot
