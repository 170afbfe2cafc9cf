#include <fmt/format.h>

#include <charconv>

#include "daemon/topology/discover.h"

namespace tierpilot {
namespace {

// An attribute of 0 is the firmware's "not given".
std::optional<int64_t> figure(FactReader& facts, const std::string& path) {
  const auto value = facts.number(path);
  if (!value || *value == 0 || *value > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*value);
}

}  // namespace

std::optional<HmatFigures> discover_hmat(FactReader& facts, int node) {
  const auto directory = fmt::format("/sys/devices/system/node/node{}/access0/initiators", node);
  if (!facts.sysroot().exists(directory)) return std::nullopt;
  HmatFigures figures;
  for (const auto& name : facts.list(directory)) {
    int id = 0;
    const char* last = name.data() + name.size();
    if (name.starts_with("node") && std::from_chars(name.data() + 4, last, id).ptr == last)
      figures.initiator_nodes.push_back(id);
  }
  figures.read_latency_ns = figure(facts, directory + "/read_latency");
  figures.write_latency_ns = figure(facts, directory + "/write_latency");
  figures.read_bandwidth_mb_per_s = figure(facts, directory + "/read_bandwidth");
  figures.write_bandwidth_mb_per_s = figure(facts, directory + "/write_bandwidth");
  return figures;
}

}  // namespace tierpilot
