// What this machine offers for observation and placement, and why it does not offer the rest.
#pragma once

#include <vector>

#include "base/sysroot.h"
#include "daemon/probe/passive/attach_tries.h"

namespace tierpilot {

// Everything below, and the subjects of the passive probe: loads and drops BPF programs.
std::vector<FeatureReport> probe_features(const Sysroot& sysroot = Sysroot());

// Only what files under the root tell: lockdown, kernel settings, memory tiering, DAMON, cgroup v2.
// Reads, never writes.
std::vector<FeatureReport> read_feature_files(const Sysroot& sysroot);

}  // namespace tierpilot
