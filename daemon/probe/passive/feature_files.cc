#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "daemon/probe/passive/feature_probe.h"

namespace tierpilot {
namespace {

FeatureReport missing(std::string feature, const Error& error) {
  return {std::move(feature), false, "unavailable: " + error.message};
}

// The chosen word of "[none] integrity confidentiality".
std::string bracketed(const std::string& text) {
  const auto open = text.find('['), close = text.find(']');
  return open == std::string::npos || close < open ? text : text.substr(open + 1, close - open - 1);
}

FeatureReport kernel_reads(const Sysroot& sysroot) {
  const std::string feature = "kernel reads (lockdown)";
  const auto text = sysroot.read("/sys/kernel/security/lockdown");
  if (!text && text.error().code == ErrorCode::kNotFound)
    return {feature, true, "no lockdown file: no lockdown, or securityfs is not mounted"};
  if (!text) return missing(feature, text.error());
  const auto mode = bracketed(*text);
  if (mode != "confidentiality") return {feature, true, "lockdown is " + mode};
  return {feature, false, "unavailable: lockdown=confidentiality forbids reading kernel memory"};
}

FeatureReport unprivileged_perf(const Sysroot& sysroot) {
  const std::string feature = "perf events without CAP_PERFMON";
  const auto level = sysroot.read_int("/proc/sys/kernel/perf_event_paranoid");
  if (!level) return missing(feature, level.error());
  const auto detail = fmt::format("kernel.perf_event_paranoid is {}", *level);
  if (*level <= 0) return {feature, true, detail + ": any process may watch whole CPUs"};
  return {feature, false, "unavailable: " + detail + ": watching whole CPUs needs CAP_PERFMON"};
}

FeatureReport unprivileged_bpf(const Sysroot& sysroot) {
  const std::string feature = "BPF without CAP_BPF";
  const auto value = sysroot.read_int("/proc/sys/kernel/unprivileged_bpf_disabled");
  if (!value) return missing(feature, value.error());
  const auto detail = fmt::format("kernel.unprivileged_bpf_disabled is {}", *value);
  if (*value == 0) return {feature, true, detail + ": maps and socket filters only"};
  return {feature, false, "unavailable: " + detail};
}

FeatureReport bpf_stats(const Sysroot& sysroot) {
  const std::string feature = "BPF run time statistics";
  const auto value = sysroot.read_int("/proc/sys/kernel/bpf_stats_enabled");
  if (!value) return missing(feature, value.error());
  if (*value == 1) return {feature, true, "kernel.bpf_stats_enabled is 1"};
  return {feature, false,
          "unavailable: kernel.bpf_stats_enabled is 0: measured only while a process with "
          "CAP_SYS_ADMIN asks for it"};
}

FeatureReport numa_nodes(const Sysroot& sysroot) {
  const std::string feature = "more than one NUMA node";
  const auto nodes = sysroot.read_id_list("/sys/devices/system/node/has_memory");
  if (!nodes) return missing(feature, nodes.error());
  const auto detail = "nodes with memory: " + format_id_list(*nodes);
  if (nodes->size() > 1) return {feature, true, detail};
  return {feature, false, "unavailable: " + detail + ": no page can migrate between nodes"};
}

FeatureReport numa_balancing(const Sysroot& sysroot) {
  const std::string feature = "NUMA balancing";
  const auto mode = sysroot.read_int("/proc/sys/kernel/numa_balancing");
  if (!mode) return missing(feature, mode.error());
  if (*mode == 0) return {feature, false, "unavailable: kernel.numa_balancing is 0"};
  const bool tiering = *mode & 2;
  return {feature, true,
          fmt::format("kernel.numa_balancing is {}{}", *mode,
                      tiering ? ": promotes hot pages of slow tiers" : "")};
}

FeatureReport demotion(const Sysroot& sysroot) {
  const std::string feature = "demotion by reclaim";
  const auto value = sysroot.read("/sys/kernel/mm/numa/demotion_enabled");
  if (!value) return missing(feature, value.error());
  if (*value == "true" || *value == "1") return {feature, true, "demotion_enabled is " + *value};
  return {feature, false, "unavailable: demotion_enabled is " + *value};
}

// A running kdamond belongs to somebody else: nothing here writes to it.
FeatureReport damon(const Sysroot& sysroot) {
  const std::string feature = "DAMON";
  const std::string root = "/sys/kernel/mm/damon/admin/kdamonds";
  if (!sysroot.exists(root))
    return {feature, false,
            "unavailable: " + root + " is missing: built without CONFIG_DAMON_SYSFS"};
  for (const auto& name : sysroot.list(root)) {
    if (name == "nr_kdamonds") continue;
    const auto state = sysroot.read(root + "/" + name + "/state");
    if (!state) return missing(feature, state.error());
    if (*state == "on")
      return {feature, false, fmt::format("unavailable: in use by kdamond {}", name)};
  }
  return {feature, true, "no kdamond of the sysfs interface runs"};
}

void add_cgroup_controllers(const Sysroot& sysroot, std::vector<FeatureReport>& reports) {
  // On machines that still use cgroup v1, version 2 is beside it.
  std::string root = "/sys/fs/cgroup";
  if (!sysroot.exists(root + "/cgroup.controllers")) root += "/unified";
  const auto text = sysroot.read(root + "/cgroup.controllers");
  if (!text) {
    reports.push_back(
        {"cgroup v2", false, "unavailable: it is not mounted: " + text.error().message});
    return;
  }
  reports.push_back({"cgroup v2", true, "mounted at " + root});
  std::istringstream words(*text);
  const std::vector<std::string> offered{std::istream_iterator<std::string>(words), {}};
  for (const char* controller : {"cpu", "cpuset", "io", "memory", "pids"}) {
    const bool on = std::find(offered.begin(), offered.end(), controller) != offered.end();
    reports.push_back({fmt::format("cgroup v2 {}", controller), on,
                       on ? ""
                          : fmt::format("unavailable: {}/cgroup.controllers does not list it "
                                        "(cgroup v1 may hold it)",
                                        root)});
  }
}

}  // namespace

std::vector<FeatureReport> read_feature_files(const Sysroot& sysroot) {
  std::vector<FeatureReport> reports{kernel_reads(sysroot),      unprivileged_bpf(sysroot),
                                     unprivileged_perf(sysroot), bpf_stats(sysroot),
                                     numa_nodes(sysroot),        numa_balancing(sysroot),
                                     demotion(sysroot),          damon(sysroot)};
  add_cgroup_controllers(sysroot, reports);
  return reports;
}

}  // namespace tierpilot
