#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "daemon/topology/discover.h"
#include "daemon/topology/meminfo.h"

namespace tierpilot {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node";

void read_memory(FactReader& facts, const std::string& path, NumaNode& node) {
  const auto text = facts.text(path);
  if (!text) return;
  node.memory_total_bytes = meminfo_bytes(*text, "MemTotal");
  node.memory_free_bytes = meminfo_bytes(*text, "MemFree");
  if (!node.memory_total_bytes || !node.memory_free_bytes)
    facts.miss(path, {ErrorCode::kInvalid, path + ": no MemTotal or MemFree in kB"});
}

// The kernel writes one distance per online node, in order of their ids.
std::map<int, int> read_distances(FactReader& facts, int node, const std::vector<int>& online) {
  const auto path = fmt::format("{}/node{}/distance", kNodes, node);
  const auto text = facts.text(path);
  if (!text) return {};
  std::map<int, int> distances;
  std::istringstream words(*text);
  for (const int other : online) {
    int distance = 0;
    if (!(words >> distance) || distance < 0) {
      facts.warn(fmt::format("{}: '{}' does not hold a distance for each of nodes {}", path, *text,
                             format_id_list(online)));
      return {};
    }
    distances[other] = distance;
  }
  return distances;
}

// A kernel without NUMA support has no node directory: the machine is one node.
std::vector<NumaNode> whole_machine(FactReader& facts) {
  NumaNode node;
  node.cpus = facts.ids("/sys/devices/system/cpu/online");
  if (node.cpus.empty()) return {};
  node.distance_to = {{0, 10}};
  read_memory(facts, "/proc/meminfo", node);
  return {node};
}

}  // namespace

std::vector<NumaNode> discover_nodes(FactReader& facts) {
  const auto path = fmt::format("{}/online", kNodes);
  if (!facts.sysroot().exists(path)) return whole_machine(facts);
  const auto online = facts.ids(path);
  std::vector<NumaNode> nodes;
  for (const int id : online) {
    NumaNode node{.id = id};
    const auto directory = fmt::format("{}/node{}", kNodes, id);
    node.cpus = facts.ids(directory + "/cpulist");
    // Some virtual machines give a one-node guest its memory step by step and the node's own file
    // shows only a part of it; /proc/meminfo has the whole.
    read_memory(facts,
                online.size() == 1 && facts.sysroot().exists("/proc/meminfo")
                    ? "/proc/meminfo"
                    : directory + "/meminfo",
                node);
    node.distance_to = read_distances(facts, id, online);
    node.hmat = discover_hmat(facts, id);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace tierpilot
