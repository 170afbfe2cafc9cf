// The cgroups that 'move stat' tells apart. Internal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot::tiertool {

struct NamedCgroup {
  std::string path;  // as it was given
  uint64_t id = 0;
};

// `paths` are directories below /sys/fs/cgroup. kInvalid for one that is none, or without the
// memory controller, by which the kernel charges pages to it.
Result<std::vector<NamedCgroup>> find_cgroups(const std::vector<std::string>& paths);

// Adds to `value` rows by cgroup: "cgroups", and "cgroup_fault_times" where faults are timed.
void add_cgroups(nlohmann::ordered_json& value, const PassiveProbe& probe,
                 const std::vector<NamedCgroup>& cgroups);

}  // namespace tierpilot::tiertool
