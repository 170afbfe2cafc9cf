#include "daemon/topology/changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace tierpilot {
namespace {

std::string memory_text(const NumaNode& node) {
  if (!node.memory_total_bytes) return "memory of unknown size";
  return *node.memory_total_bytes ? format_bytes(*node.memory_total_bytes) : "no memory";
}

bool same_size(std::optional<uint64_t> before, std::optional<uint64_t> after) {
  if (!before || !after) return before == after;
  const auto [small, large] = std::minmax(*before, *after);
  return large - small <= large / 64;
}

void compare_node(const NumaNode& before, const NumaNode& after, std::vector<std::string>& found) {
  if (!same_size(before.memory_total_bytes, after.memory_total_bytes))
    found.push_back(fmt::format("node {} has {}, it had {}", after.id, memory_text(after),
                                memory_text(before)));
  if (before.cpus != after.cpus)
    found.push_back(fmt::format("node {} has CPUs [{}], it had [{}]", after.id,
                                format_id_list(after.cpus), format_id_list(before.cpus)));
}

void compare_nodes(const Topology& before, const Topology& after, std::vector<std::string>& found) {
  for (const auto& node : before.nodes)
    if (!after.node(node.id)) found.push_back(fmt::format("node {} went offline", node.id));
  for (const auto& node : after.nodes)
    if (const auto* old = before.node(node.id))
      compare_node(*old, node, found);
    else
      found.push_back(fmt::format("node {} came online with {}", node.id, memory_text(node)));
}

const DaxDevice* dax_device(const Topology& topology, const std::string& name) {
  const auto& all = topology.dax_devices;
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::string driver_text(const DaxDevice& device) {
  return device.driver.empty() ? "no driver" : device.driver;
}

void compare_dax(const Topology& before, const Topology& after, std::vector<std::string>& found) {
  for (const auto& device : before.dax_devices)
    if (!dax_device(after, device.name)) found.push_back(device.name + " is gone");
  for (const auto& device : after.dax_devices) {
    const auto* old = dax_device(before, device.name);
    if (!old)
      found.push_back(fmt::format("{} appeared with {}", device.name, driver_text(device)));
    else if (old->driver != device.driver)
      found.push_back(
          fmt::format("{} has {}, it had {}", device.name, driver_text(device), driver_text(*old)));
  }
}

std::string ranking(const Topology& topology) {
  std::vector<std::string> tiers;
  for (const auto& tier : topology.kernel_tiers)
    tiers.push_back(fmt::format("tier {}: nodes {}", tier.id, format_id_list(tier.nodes)));
  return tiers.empty() ? "nothing" : fmt::format("{}", fmt::join(tiers, ", "));
}

}  // namespace

std::vector<std::string> topology_changes(const Topology& before, const Topology& after) {
  std::vector<std::string> found;
  compare_nodes(before, after, found);
  compare_dax(before, after, found);
  if (const auto now = ranking(after); now != ranking(before))
    found.push_back("the kernel now ranks " + now);
  return found;
}

}  // namespace tierpilot
