#include "tools/demo/layout.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>

#include "base/sysroot.h"

namespace tierpilot::demo {
namespace {

namespace fs = std::filesystem;

std::vector<int> cpus_of(const LayoutOptions& options, size_t node) {
  const size_t count = options.cpus.size();
  if (count < options.nodes) return options.cpus;
  const size_t begin = node * count / options.nodes, end = (node + 1) * count / options.nodes;
  return {options.cpus.begin() + static_cast<ptrdiff_t>(begin),
          options.cpus.begin() + static_cast<ptrdiff_t>(end)};
}

// TOML's basic string: quotes, backslashes and control characters must be escaped.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += '\\', result += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string coordinator_text(const LayoutOptions& options, const std::string& address) {
  return fmt::format(
      "[coordinator]\nstate_dir = {}\n\n[listen]\nunix = {}\n\n[lease]\nduration_ms = {}\n\n"
      "[policy]\nactive = {}\nseed = {}\n\n[dqn]\nweights = {}\n{}",
      quoted(options.folder / "coordinator"), quoted(address), options.lease_ms,
      quoted(options.policy), options.seed, quoted(options.weights), options.coordinator_more);
}

std::string node_text(const LayoutOptions& options, const std::string& address,
                      const NodePlan& node) {
  const fs::path home = options.folder / node.name;
  return fmt::format(
      "[node]\nname = {}\ncoordinator = {}\ndata_listen = {}\ncpus = {}\nunits = {}\nwork_dir = "
      "{}\n\n"
      "[pool]\nfast_dir = {}\nfast_budget = {}\nslow_dir = {}\nslow_budget = {}\n{}",
      quoted(node.name), quoted(address), quoted("unix:" + (home / "data.sock").string()),
      quoted(format_id_list(node.cpus)), node.units, quoted(home / "work"),
      quoted(options.fast_folder / node.name), options.fast_budget_bytes, quoted(home / "slow"),
      options.slow_budget_bytes, options.node_more);
}

Status write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) return fail_errno(errno, fmt::format("'{}' cannot be written", path.string()));
  return {};
}

}  // namespace

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

Layout make_layout(const LayoutOptions& options) {
  Layout layout;
  layout.address = "unix:" + (options.folder / "coordinator.sock").string();
  layout.coordinator_config = options.folder / "coordinator.toml";
  layout.coordinator_log = options.folder / "coordinator.log";
  layout.coordinator_config_text = coordinator_text(options, layout.address);
  layout.folders.push_back(options.folder / "coordinator");
  const bool shared = options.cpus.size() < options.nodes;
  for (size_t i = 0; i < options.nodes; ++i) {
    NodePlan node;
    node.name = fmt::format("n{}", i + 1);
    node.cpus = cpus_of(options, i);
    node.units = shared ? 1 : static_cast<uint32_t>(node.cpus.size());
    if (options.units > 0) node.units = options.units;
    node.config = options.folder / (node.name + ".toml");
    node.log = options.folder / (node.name + ".log");
    node.config_text = node_text(options, layout.address, node);
    for (const auto& folder :
         {options.folder / node.name / "work", options.folder / node.name / "slow",
          options.fast_folder / node.name})
      layout.folders.push_back(folder);
    layout.nodes.push_back(std::move(node));
  }
  return layout;
}

Status write_layout(const Layout& layout) {
  for (const auto& folder : layout.folders) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return fail_errno(error.value(), fmt::format("folder '{}'", folder.string()));
  }
  if (auto status = write_file(layout.coordinator_config, layout.coordinator_config_text); !status)
    return status;
  for (const auto& node : layout.nodes)
    if (auto status = write_file(node.config, node.config_text); !status) return status;
  return {};
}

}  // namespace tierpilot::demo
