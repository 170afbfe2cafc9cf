#include "daemon/memory/paging/rules.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>

namespace tierpilot {
namespace {

bool glob(const std::string& pattern, const std::string& text) {
  return pattern.empty() || ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool glob_tree(const std::string& pattern, const std::string& path) {
  return pattern.empty() || ::fnmatch(pattern.c_str(), path.c_str(), FNM_LEADING_DIR) == 0;
}

}  // namespace

Result<size_t> find_tier(const std::vector<PagingTier>& tiers, std::string_view name) {
  constexpr std::string_view kNode = "node";
  int node = -1;
  if (name.starts_with(kNode)) {
    const auto [end, error] =
        std::from_chars(name.data() + kNode.size(), name.data() + name.size(), node);
    if (error != std::errc() || end != name.data() + name.size()) node = -1;
  }
  if (node < 0 && name != "fast" && name != "slow")
    return fail(
        ErrorCode::kInvalid,
        fmt::format("tier '{}': must be \"fast\", \"slow\" or a NUMA node as in \"node1\"", name));
  for (size_t t = 0; t < tiers.size(); ++t) {
    const auto& nodes = tiers[t].nodes;
    if (name == "fast" || (name == "slow" && t + 1 == tiers.size()) ||
        std::find(nodes.begin(), nodes.end(), node) != nodes.end())
      return t;
  }
  return fail(ErrorCode::kNotFound, fmt::format("tier '{}': there is none on this machine", name));
}

Result<ProcessIdentity> identify_process(const Sysroot& sysroot, pid_t pid) {
  const auto name = sysroot.read(fmt::format("/proc/{}/comm", pid));
  if (!name) return fail(ErrorCode::kNotFound, fmt::format("process {}: there is none", pid));
  ProcessIdentity identity{.pid = pid, .name = *name, .cgroup = {}, .task = {}};
  // "0::/path" is cgroup v2's line; the others are hierarchies of v1.
  auto text = sysroot.read(fmt::format("/proc/{}/cgroup", pid)).value_or("");
  for (size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, 3, "0::") == 0) identity.cgroup = text.substr(at + 3, end - at - 3);
    at = end + 1;
  }
  return identity;
}

bool PagingMatch::holds(const ProcessIdentity& process) const {
  const auto uses = [this](const auto& name) { return glob(dataset, name); };
  return (pid == 0 || pid == process.pid) && glob(name, process.name) && glob(task, process.task) &&
         glob_tree(cgroup, process.cgroup) &&
         (dataset.empty() || std::any_of(process.datasets.begin(), process.datasets.end(), uses));
}

const PagingRule* find_rule(const std::vector<PagingRule>& rules, const ProcessIdentity& process) {
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const auto& r) { return r.match.holds(process); });
  return rule == rules.end() ? nullptr : &*rule;
}

}  // namespace tierpilot
