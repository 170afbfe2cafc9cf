#include "daemon/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "daemon/topology/discover.h"

namespace tierpilot {

void FactReader::miss(const std::string& path, const Error& why) {
  warn(why.message);
  unread_.push_back(path);
}

std::optional<std::string> FactReader::text(const std::string& path) {
  if (!sysroot_.exists(path)) return std::nullopt;
  auto text = sysroot_.read(path);
  if (text) return *text;
  miss(path, text.error());
  return std::nullopt;
}

std::optional<uint64_t> FactReader::number(const std::string& path) {
  if (!sysroot_.exists(path)) return std::nullopt;
  const auto digits = sysroot_.read(path);
  if (!digits) {
    // Some figures of CXL are root's alone, and stay so.
    if (digits.error().code == ErrorCode::kDenied)
      warn(digits.error().message);
    else
      miss(path, digits.error());
    return std::nullopt;
  }
  const bool hex = digits->starts_with("0x");
  uint64_t value = 0;
  const char* last = digits->data() + digits->size();
  const auto [end, err] =
      std::from_chars(digits->data() + (hex ? 2 : 0), last, value, hex ? 16 : 10);
  if (err == std::errc{} && end == last) return value;
  warn(fmt::format("{}: '{}' is not a number", path, *digits));
  return std::nullopt;
}

std::optional<int> FactReader::node_id(const std::string& path) {
  if (!sysroot_.exists(path)) return std::nullopt;
  const auto value = sysroot_.read_int(path);
  if (!value)
    warn(value.error().message);
  else if (*value >= 0 && *value <= 65535)
    return static_cast<int>(*value);
  return std::nullopt;
}

std::vector<int> FactReader::ids(const std::string& path) {
  if (!sysroot_.exists(path)) return {};
  auto ids = sysroot_.read_id_list(path);
  if (ids) return *ids;
  miss(path, {ids.error().code, fmt::format("{}: {}", path, ids.error().message)});
  return {};
}

std::vector<std::string> FactReader::list(const std::string& path) {
  auto names = sysroot_.try_list(path);
  if (names) return std::move(*names);
  miss(path, names.error());
  return {};
}

const NumaNode* Topology::node(int id) const {
  const auto at =
      std::find_if(nodes.begin(), nodes.end(), [id](const auto& n) { return n.id == id; });
  return at == nodes.end() ? nullptr : &*at;
}

Result<Topology> discover_topology(const Sysroot& sysroot, const DiscoverOptions& options) {
  Topology topology;
  FactReader facts(sysroot, topology);
  topology.cpus_online = facts.ids("/sys/devices/system/cpu/online");
  topology.nodes = discover_nodes(facts);
  if (topology.nodes.empty() && topology.cpus_online.empty())
    return fail(ErrorCode::kUnavailable,
                fmt::format("{}: neither NUMA nodes nor CPUs are listed; is /sys mounted?",
                            sysroot.resolve("/sys/devices/system").string()));
  topology.kernel_tiers = discover_kernel_tiers(facts);
  if (topology.kernel_tiers.empty())
    topology.kernel_tiers_unavailable = "/sys/devices/virtual/memory_tiering lists no tiers";
  discover_cxl(facts, topology);
  topology.dax_devices = discover_dax(facts);
  discover_gpus(facts, options, topology);
  return topology;
}

}  // namespace tierpilot
