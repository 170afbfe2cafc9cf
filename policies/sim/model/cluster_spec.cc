#include "policies/sim/model/cluster_spec.h"

#include <fmt/format.h>

#include <numeric>

#include "base/config.h"

namespace tierpilot::sim {
namespace {

constexpr double kMostSeconds = 1e9;
constexpr double kMostPerSecond = 1e18;
constexpr uint32_t kMostNodes = 1'000'000;

double seconds(ConfigSection& section, std::string_view key, double fallback) {
  return section.number(key, fallback, 0, kMostSeconds);
}

// GB/s in the file, bytes a second in the program.
double gb_per_s(ConfigSection& section, std::string_view key, double fallback_bytes_per_s) {
  return section.number(key, fallback_bytes_per_s / 1e9, 1e-6, 1e6) * 1e9;
}

uint32_t count(ConfigSection& section, std::string_view key, uint32_t fallback, uint32_t min,
               uint32_t max) {
  return static_cast<uint32_t>(section.integer(key, fallback, min, max));
}

FailureRate failures(ConfigSection& section, const std::string& prefix) {
  FailureRate rate;
  rate.mean_between_s = seconds(section, prefix + "_mean_between_failures_s", 0);
  rate.mean_repair_s = seconds(section, prefix + "_mean_repair_s", rate.mean_repair_s);
  return rate;
}

TierSpeeds tier_speeds(ConfigSection& section, const std::filesystem::path& folder) {
  TierSpeeds tiers;
  if (const auto file = section.text("tiers", ""); !file.empty()) {
    if (const auto read = read_tier_speeds(folder / file))
      tiers = *read;
    else
      section.complain("tiers", read.error().message);
  }
  tiers.fast_latency_ns = section.number("fast_latency_ns", tiers.fast_latency_ns, 0.1, 1e9);
  tiers.fast_read_bytes_per_s =
      gb_per_s(section, "fast_read_gb_per_s", tiers.fast_read_bytes_per_s);
  tiers.fast_copy_bytes_per_s =
      gb_per_s(section, "fast_copy_gb_per_s", tiers.fast_copy_bytes_per_s);
  tiers.promote_bytes_per_s = gb_per_s(section, "promote_gb_per_s", tiers.promote_bytes_per_s);
  tiers.evict_bytes_per_s = gb_per_s(section, "evict_gb_per_s", tiers.evict_bytes_per_s);
  tiers.promote_start_s =
      section.number("promote_start_us", tiers.promote_start_s * 1e6, 0, 1e9) / 1e6;
  tiers.evict_start_s = section.number("evict_start_us", tiers.evict_start_s * 1e6, 0, 1e9) / 1e6;
  tiers.free_bytes_per_s = section.number("free_gb_per_s", 0, 0, 1e6) * 1e9;
  return tiers;
}

NodeGroup node_group(ConfigSection& section, const std::filesystem::path& folder) {
  NodeGroup group;
  group.name = section.text("name", group.name);
  group.count = count(section, "count", group.count, 1, kMostNodes);
  group.units = count(section, "units", group.units, 1, 1'000'000);
  group.operations_per_s =
      section.number("operations_per_s", group.operations_per_s, 1, kMostPerSecond);
  group.memory_bytes = section.bytes("memory", group.memory_bytes);
  group.fast_budget_bytes = section.bytes("fast_budget", group.fast_budget_bytes);
  group.slow_budget_bytes = section.bytes("slow_budget", group.slow_budget_bytes);
  const auto kind = section.text("slow_kind", "directory");
  if (kind != "directory" && kind != "node")
    section.complain("slow_kind", "must be \"directory\" or \"node\"");
  group.exclusive_tiers = kind == "node";
  group.movers = count(section, "movers", group.movers, 1, 64);
  group.readers = count(section, "readers", group.readers, 1, 64);
  group.tiers = tier_speeds(section, folder);
  group.link_bytes_per_s = gb_per_s(section, "link_gb_per_s", group.link_bytes_per_s);
  group.link_latency_s =
      section.number("link_latency_us", group.link_latency_s * 1e6, 0, 1e9) / 1e6;
  group.launch_s = section.number("launch_us", group.launch_s * 1e6, 0, 1e9) / 1e6;
  group.shared_cores = section.number("shared_cores", 0, 0, 1e6);
  group.handling_core_s = section.number("handling_core_us", 0, 0, 1e9) / 1e6;
  group.gpus = count(section, "gpus", 0, 0, 64);
  group.gpu_type = section.text("gpu_type", "");
  group.node_failures = failures(section, "node");
  group.gpu_failures = failures(section, "gpu");
  return group;
}

CoordinatorSpec coordinator(ConfigSection section) {
  CoordinatorSpec spec;
  spec.backlog_units = count(section, "backlog_units", spec.backlog_units, 0, 4096);
  const auto order = section.text("order", "shortest");
  if (const auto known = service_order_from_name(order))
    spec.service_order = *known;
  else
    section.complain("order", "must be \"shortest\" or \"arrival\"");
  spec.hold_tasks = section.boolean("hold", spec.hold_tasks);
  spec.considered_nodes = count(section, "considered_nodes", spec.considered_nodes, 2, 1'000'000);
  spec.max_attempts = count(section, "max_attempts", spec.max_attempts, 1, 100);
  spec.gang_patience_s = seconds(section, "gang_patience_s", spec.gang_patience_s);
  spec.lease_s = seconds(section, "lease_s", spec.lease_s);
  spec.accept_s = section.number("accept_us", spec.accept_s * 1e6, 0, 1e9) / 1e6;
  spec.dispatch_s = section.number("dispatch_us", spec.dispatch_s * 1e6, 0, 1e9) / 1e6;
  spec.report_s = section.number("report_us", spec.report_s * 1e6, 0, 1e9) / 1e6;
  return spec;
}

Result<ClusterSpec> spec_of(ConfigReader reader, const std::filesystem::path& folder) {
  ClusterSpec spec;
  auto top = reader.section("");
  spec.name = top.text("name", "cluster");
  spec.coordinator = coordinator(reader.section("coordinator"));
  auto clusters = reader.section("failure_clusters");
  spec.failure_clusters.probability = clusters.number("probability", 0, 0, 0.99);
  spec.failure_clusters.mean_delay_s =
      seconds(clusters, "mean_delay_s", spec.failure_clusters.mean_delay_s);
  auto checkpoints = reader.section("checkpoints");
  spec.checkpoints.interval_s = seconds(checkpoints, "interval_s", 0);
  spec.checkpoints.cost_s = seconds(checkpoints, "cost_s", 0);
  spec.checkpoints.restart_s = seconds(checkpoints, "restart_s", 0);
  for (auto& section : top.tables("nodes")) spec.groups.push_back(node_group(section, folder));
  if (spec.groups.empty() && !top.has("nodes"))
    top.complain("nodes", "at least one [[nodes]] is needed");
  const auto nodes =
      std::accumulate(spec.groups.begin(), spec.groups.end(), uint64_t{0},
                      [](uint64_t sum, const NodeGroup& group) { return sum + group.count; });
  if (nodes > kMostNodes) top.complain("nodes", fmt::format("more than {} nodes", kMostNodes));
  if (auto status = reader.finish(); !status) return tl::unexpected(status.error());
  return spec;
}

}  // namespace

uint32_t ClusterSpec::node_count() const {
  return std::accumulate(groups.begin(), groups.end(), 0U,
                         [](uint32_t sum, const NodeGroup& group) { return sum + group.count; });
}

uint64_t ClusterSpec::unit_count() const {
  return std::accumulate(groups.begin(), groups.end(), uint64_t{0},
                         [](uint64_t sum, const NodeGroup& group) {
                           return sum + uint64_t{group.count} * group.units;
                         });
}

Result<ClusterSpec> read_cluster_spec(const std::filesystem::path& path) {
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  return spec_of(std::move(*reader), path.parent_path());
}

Result<ClusterSpec> parse_cluster_spec(std::string_view toml, std::string origin,
                                       const std::filesystem::path& folder) {
  auto reader = ConfigReader::parse(toml, std::move(origin));
  if (!reader) return tl::unexpected(reader.error());
  return spec_of(std::move(*reader), folder);
}

}  // namespace tierpilot::sim
