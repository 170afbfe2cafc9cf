#include "daemon/probe/passive/feature_probe.h"

#include <linux/capability.h>

#include <algorithm>
#include <iterator>

#include "daemon/probe/passive/kernel_btf.h"
#include "daemon/probe/passive/libbpf_log.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot {
namespace {

struct Privilege {
  int capability;
  const char* use;
};
constexpr Privilege kPrivileges[] = {
    {CAP_BPF, "loads BPF programs and maps"},
    {CAP_PERFMON, "reads kernel memory in BPF programs, watches whole CPUs"},
    {CAP_SYS_NICE, "binds and moves pages of other processes"},
    {CAP_SYS_PTRACE, "moves pages of processes of other users"},
    {CAP_SYS_ADMIN, "lists the BPF programs of others, turns on run time statistics"},
};

void append(std::vector<FeatureReport>& all, std::vector<FeatureReport> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

std::vector<FeatureReport> privileges(const Capabilities& capabilities) {
  std::vector<FeatureReport> reports;
  for (const auto& [capability, use] : kPrivileges) {
    const bool on = capabilities.has(capability);
    reports.push_back(
        {capability_name(capability), on,
         on ? use : std::string("unavailable: this process does not have it (") + use + ")"});
  }
  return reports;
}

std::vector<FeatureReport> observed_subjects() {
  std::vector<FeatureReport> reports;
  PassiveOptions options;
  options.run_time_stats = false;
  const auto by_default = options.subjects;
  options.subjects.emplace_back("fault_time");
  const auto probe = PassiveProbe::start(options);
  for (const auto& state : probe->subjects()) {
    const bool asked = std::ranges::find(by_default, state.subject) == by_default.end();
    reports.push_back({"observe " + state.subject, state.on,
                       state.on && asked ? "only when asked for" : state.reason});
  }
  return reports;
}

}  // namespace

std::vector<FeatureReport> probe_features(const Sysroot& sysroot) {
  capture_libbpf_log();
  const auto capabilities = Capabilities::of_self(sysroot);
  std::vector<FeatureReport> reports = privileges(capabilities);
  {
    const auto btf = KernelBtf::load();
    reports.push_back(
        {"kernel BTF", btf.has_value(), btf ? "" : "unavailable: " + btf.error().message});
    append(reports, try_programs(btf ? &*btf : nullptr, capabilities));
  }
  append(reports, try_maps(capabilities));
  append(reports, observed_subjects());
  append(reports, read_feature_files(sysroot));
  return reports;
}

}  // namespace tierpilot
