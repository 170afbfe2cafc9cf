#include "daemon/agent/node/node_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include "daemon/agent/link/wire.h"
#include "daemon/agent/metrics/exposed.h"
#include "rpc/protocol.h"

namespace tierpilot::agent {
namespace {

Result<double> measured(const Measure& from) {
  if (from.value) return *from.value;
  return fail(ErrorCode::kUnavailable, from.unavailable);
}

void write_tier(wire::Tier::Builder to, const TierMeasurement& from, std::string_view role) {
  to.setTier(from.tier.name);
  to.setKind(from.tier.kind);
  to.setPlace(from.tier.is_directory() ? from.tier.directory
                                       : fmt::format("NUMA node {}", from.tier.numa_node));
  to.setRole(kj::StringPtr(role.data(), role.size()));
  to.setCapacityBytes(from.tier.capacity_bytes);
  auto latency = to.initLatencyNs();
  write_measure(latency.initP50(), measured(from.latency_p50_ns));
  write_measure(latency.initP99(), measured(from.latency_p99_ns));
  write_measure(to.initReadGbPerS(), measured(from.read_gb_per_s));
  write_measure(to.initWriteGbPerS(), measured(from.write_gb_per_s));
  write_measure(to.initEvictGbPerS(), measured(from.evict_gb_per_s));
  write_measure(to.initPromoteGbPerS(), measured(from.promote_gb_per_s));
  to.setMethod(from.method);
}

void write_tiers(wire::NodeInfo::Builder to, const Calibration& calibration) {
  auto tiers = to.initTiers(static_cast<uint32_t>(calibration.tiers.size()));
  for (uint32_t i = 0; i < tiers.size(); ++i)
    write_tier(tiers[i], calibration.tiers[i],
               i == calibration.fast   ? "fast"
               : i == calibration.slow ? "slow"
                                       : "");
  const auto& operations = calibration.operations;
  const auto off = fail(ErrorCode::kUnavailable, "calibration is off in the configuration");
  write_measure(to.initFloat32OpsPerS(),
                operations ? Result<double>(operations->float32_ops_per_s) : Result<double>(off));
  write_measure(to.initInt32ToFloat(), operations
                                           ? Result<double>(operations->float32_ops_per_int32_op())
                                           : Result<double>(off));
}

void write_gpus(wire::NodeInfo::Builder to, const Topology& topology) {
  auto gpus = to.initGpus(static_cast<uint32_t>(topology.gpus.size()));
  for (uint32_t i = 0; i < gpus.size(); ++i) {
    const auto& gpu = topology.gpus[i];
    gpus[i].setName(gpu.name);
    gpus[i].setUuid(gpu.uuid);
    gpus[i].setMemoryBytes(gpu.memory_total_bytes.value_or(0));
    gpus[i].setComputeCapability(gpu.compute_capability.value_or(0));
    gpus[i].setCores(gpu.cores.value_or(0));
    gpus[i].setSmClockMhz(gpu.sm_clock_mhz.value_or(0));
    gpus[i].setMemoryClockMhz(gpu.memory_clock_mhz.value_or(0));
    gpus[i].setBusWidthBits(gpu.bus_width_bits.value_or(0));
  }
  to.setGpusUnavailable(topology.gpus_unavailable);
}

// Groups of cores divide the node's memory; GPUs have their own.
void write_shared_units(wire::NodeInfo::Builder to, const NodeFacts& facts) {
  auto shared = to.initSharedUnits(static_cast<uint32_t>(facts.shared_units.size()));
  for (uint32_t i = 0; i < shared.size(); ++i) {
    const auto& unit = facts.shared_units[i];
    if (unit.gpu.empty()) {
      shared[i].setType("cpu");
      shared[i].setCores(static_cast<double>(unit.cpus.size()));
      shared[i].setMemoryBytes(facts.config.memory_bytes / facts.config.shared_units.size());
    }
    for (const auto& gpu : facts.topology.gpus)
      if (!unit.gpu.empty() && gpu.uuid == unit.gpu) {
        shared[i].setType(gpu.name);
        shared[i].setGpu(gpu.uuid);
        shared[i].setMemoryBytes(gpu.memory_total_bytes.value_or(0));
      }
  }
}

template <class Number>
Result<double> told(const std::optional<Number>& value) {
  if (value) return static_cast<double>(*value);
  return fail(ErrorCode::kUnavailable, "the driver does not tell");
}

void write_readings(wire::NodeStatus::Builder to, const std::vector<GpuReading>& readings) {
  auto gpus = to.initGpus(static_cast<uint32_t>(readings.size()));
  for (uint32_t i = 0; i < gpus.size(); ++i) {
    gpus[i].setUuid(readings[i].gpu);
    write_measure(gpus[i].initTemperatureC(), told(readings[i].temperature_c));
    write_measure(gpus[i].initMemoryUsedBytes(), told(readings[i].memory_used_bytes));
    write_measure(gpus[i].initBusyPercent(), told(readings[i].busy_percent));
  }
}

void write_feature(wire::Feature::Builder to, const std::string& name, bool on,
                   const std::string& reason) {
  to.setName(name);
  to.setOn(on);
  to.setReason(reason);
}

void write_features(wire::NodeInfo::Builder to, const NodeFacts& facts) {
  auto subjects = facts.subjects;
  if (subjects.empty())
    subjects.push_back({.subject = "passive probe", .reason = "off in the configuration"});
  subjects.push_back(facts.placement.feature());
  const auto& unnoticed = facts.why_pauses_pass_unnoticed;
  subjects.push_back({.subject = "pause_watch", .on = unnoticed.empty(), .reason = unnoticed});
  subjects.push_back({.subject = "users of tasks",
                      .on = facts.users.others(),
                      .reason = facts.users.description()});
  auto features = to.initFeatures(static_cast<uint32_t>(subjects.size()));
  for (uint32_t i = 0; i < features.size(); ++i)
    write_feature(features[i], subjects[i].subject, subjects[i].on, subjects[i].reason);
  const std::pair<const char*, const LimitState&> limits[] = {{"memory", facts.limits.memory},
                                                              {"cpu", facts.limits.cpu},
                                                              {"cpuset", facts.limits.cpuset},
                                                              {"io", facts.limits.io},
                                                              {"kill", facts.limits.kill}};
  auto list = to.initLimits(static_cast<uint32_t>(std::size(limits)));
  for (uint32_t i = 0; i < list.size(); ++i)
    write_feature(list[i], limits[i].first, limits[i].second.on, limits[i].second.why_not);
}

}  // namespace

void write_info(wire::NodeInfo::Builder to, const NodeFacts& facts) {
  const auto& config = facts.config;
  char hostname[256] = {};
  ::gethostname(hostname, sizeof hostname - 1);
  to.setName(config.name);
  write_program(own_program("tierpilotd"), to.initProgram());
  to.setInstance(facts.instance);
  to.setHostname(hostname);
  to.setVersion(TIERPILOT_VERSION);
  to.setCpus(format_id_list(config.cpus));
  to.setUnits(config.units);
  to.setMemoryBytes(config.memory_bytes);
  write_shared_units(to, facts);
  to.setFastBudgetBytes(config.pool.fast_budget_bytes);
  to.setSwapRoomBytes(swap_room_bytes(config.swap_tiers));
  to.setSlowBudgetBytes(config.pool.slow_budget_bytes);
  to.setLargestWriteBytes(pool_options(config.pool, facts.calibration).largest_write_bytes());
  to.setDataAddress(facts.data_address);
  auto predecessors = to.initPredecessors(static_cast<uint32_t>(facts.predecessors.size()));
  for (uint32_t i = 0; i < predecessors.size(); ++i) predecessors.set(i, facts.predecessors[i]);
  write_tiers(to, facts.calibration);
  write_gpus(to, facts.topology);
  write_features(to, facts);
}

std::vector<MetricValue> StatusReporter::figures() {
  metrics_.refresh();
  auto values = metrics_.values();
  for (auto& value : more_()) values.push_back(std::move(value));
  return values;
}

std::string StatusReporter::page(const Calibration& calibration) {
  Exposition page;
  page.gauge("tierpilot_build_info", "Always 1; the version is a label.", 1,
             {{"version", TIERPILOT_VERSION}});
  page.process();
  page.gauge("tierpilot_running_units", "Compute units that run a task.",
             static_cast<double>(tasks_.running_units()));
  expose_tiers(page, calibration);
  expose_pool(page, pool_.usage());
  expose_gpus(page, gpus_);
  expose(page, figures());
  return page.text();
}

void StatusReporter::write(wire::NodeStatus::Builder to) {
  const auto usage = pool_.usage();
  to.setFastFreeBytes(usage.fast_budget_bytes -
                      std::min(usage.fast_used_bytes, usage.fast_budget_bytes));
  to.setSlowFreeBytes(usage.slow_budget_bytes -
                      std::min(usage.slow_used_bytes, usage.slow_budget_bytes));
  to.setRunningUnits(tasks_.running_units());
  to.setTakesNone(tasks_.closed_because());
  const auto troubles = health_.troubles();
  auto unhealthy = to.initUnhealthy(static_cast<uint32_t>(troubles.size()));
  uint32_t n = 0;
  for (const auto& [unit, reason] : troubles) {
    unhealthy[n].setUnit(unit);
    unhealthy[n++].setReason(reason);
  }
  write_readings(to, gpus_);
  write_measure(to.initEvictGbPerS(), data_.evict_gb_per_s());
  const auto values = figures();
  write_measure(to.initSelfCpuShare(), metrics_.cpu_share());
  to.setSelfResidentBytes(metrics_.resident_bytes());
  write_measure(to.initBpfRunTimeShare(), metrics_.bpf_share());
  auto metrics = to.initMetrics(static_cast<uint32_t>(values.size()));
  for (uint32_t i = 0; i < metrics.size(); ++i) write_metric(metrics[i], values[i]);
}

}  // namespace tierpilot::agent
