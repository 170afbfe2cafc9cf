// Which group a process belongs to, and how that group is placed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot {

// What is known of a process. Empty: nothing.
struct ProcessIdentity {
  pid_t pid = 0;
  std::string name;    // /proc/<pid>/comm
  std::string cgroup;  // "/system.slice/x.service", of cgroup v2
  std::string task;    // Tierpilot's own
  std::vector<std::string> datasets{};
};

// Name and cgroup; kNotFound when there is no such process.
Result<ProcessIdentity> identify_process(const Sysroot& sysroot, pid_t pid);

// Every condition that is set must hold. Patterns are those of the shell (fnmatch), and a cgroup's
// holds for all below it. None set: holds for every process.
struct PagingMatch {
  pid_t pid = 0;
  std::string name;
  std::string cgroup;
  std::string task;
  std::string dataset;

  bool holds(const ProcessIdentity& process) const;
};

struct PagingRule {
  PagingMatch match;
  PagingGroup group;
  std::string tier{};                // for kStatic, as in find_tier(): tiers come and go
  std::optional<PagingMode> mode{};  // nothing: kEnforce for Tierpilot's own, else kObserve
};

// "fast" and "slow" are the fastest and the slowest tier, "node3" the one with this NUMA node.
// kInvalid for another name, kNotFound for a node that is in none of them.
Result<size_t> find_tier(const std::vector<PagingTier>& tiers, std::string_view name);

// The first rule that holds; null when none does.
const PagingRule* find_rule(const std::vector<PagingRule>& rules, const ProcessIdentity& process);

}  // namespace tierpilot
