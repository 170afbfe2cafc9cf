// One look at the machine's memory: counters of nodes, of the kernel and of processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/sysroot.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot::tiertool {

struct ProcessReading {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // tells a process from a later one of the same pid
  std::string name;
  uint64_t resident_bytes = 0;
  uint64_t faults = 0, major_faults = 0;
  uint64_t cpu_ticks = 0;  // of sysconf(_SC_CLK_TCK)
  std::optional<std::map<int, uint64_t>> bytes_on_node;
};

struct NodeReading {
  int node = 0;
  uint64_t total_bytes = 0, free_bytes = 0;
};

struct MachineReading {
  int64_t boot_ns = 0;
  std::vector<NodeReading> nodes;
  std::map<std::string, uint64_t> vmstat;     // /proc/vmstat; where "pgdemote_kswapd" may
                                              // be missing, as names come and go
  std::optional<double> pressure_some_share;  // of the last 10 s: a task waited for memory
  std::optional<double> pressure_full_share;  // all of them did
  std::vector<ProcessReading> processes;      // that have memory, largest first
};

// kUnavailable when there is no /proc/vmstat. Processes that end meanwhile are left out.
Result<MachineReading> read_machine(const Sysroot& sysroot, int64_t boot_ns);

// Of one line of /proc/<pid>/stat; kInvalid when it is none.
Result<ProcessReading> parse_process_stat(std::string_view line, uint64_t page_bytes);

// On which nodes processes have their pages. The kernel walks all of a process's page tables to
// tell, so that a look at everybody is spread over several calls.
class NodeShares {
 public:
  explicit NodeShares(const Sysroot& sysroot) : sysroot_(sysroot) {}
  // Fills bytes_on_node of the largest `limit` processes, from what it knew and, until
  // `budget_ns` is spent, from a fresh look, the longest unseen first.
  void fill(MachineReading& machine, size_t limit, int64_t budget_ns);

 private:
  struct Known {
    uint64_t start_ticks = 0;
    int64_t read_boot_ns = 0;
    std::optional<std::map<int, uint64_t>> bytes_on_node;
  };
  Known look(const ProcessReading& process, int64_t boot_ns) const;

  const Sysroot& sysroot_;
  std::map<pid_t, Known> known_;
};

}  // namespace tierpilot::tiertool
