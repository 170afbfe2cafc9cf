#include "daemon/agent/calibration/calibration.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "daemon/probe/active/disagreement.h"

namespace tierpilot::agent {
namespace {

// A daemon that starts keeps its tasks waiting: the first setting up of memory, and what runs on
// beyond the last round, fit between this and 5 s.
constexpr std::chrono::milliseconds kEnough{4000};

TierMeasurement unmeasured(const TierSpec& spec) {
  const Measure off{.unavailable = "calibration is off in the configuration"};
  TierMeasurement tier;
  tier.tier = spec;
  tier.latency_p50_ns = tier.latency_p99_ns = tier.cached_latency_p50_ns = off;
  tier.read_gb_per_s = tier.write_gb_per_s = tier.copy_gb_per_s = tier.evict_gb_per_s =
      tier.promote_gb_per_s = off;
  tier.evict_first_page_ns = tier.promote_first_page_ns = off;
  tier.evict_start_ns = tier.promote_start_ns = off;
  tier.method = "not measured";
  return tier;
}

Result<std::vector<TierMeasurement>> measured_tiers(const NodeConfig::Probe& probe,
                                                    const std::vector<TierSpec>& specs) {
  if (probe.calibrate) return measure_tiers(specs, probe_options(probe));
  std::vector<TierMeasurement> tiers;
  std::transform(specs.begin(), specs.end(), std::back_inserter(tiers), unmeasured);
  return tiers;
}

double children_cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

std::string speed(const TierMeasurement& tier) {
  const auto& latency = tier.latency_p50_ns;
  return latency.value ? fmt::format("{:.0f} ns", *latency.value) : "not measured";
}

ptrdiff_t node_count(const std::vector<TierMeasurement>& tiers) {
  return std::count_if(tiers.begin(), tiers.end(),
                       [](const auto& tier) { return !tier.tier.is_directory(); });
}

class Chooser {
 public:
  Chooser(const NodeConfig::Pool& pool, const std::vector<TierMeasurement>& tiers)
      : pool_(pool), tiers_(tiers) {}

  Result<size_t> fast() const {
    if (pool_.fast_node) return node(*pool_.fast_node, "pool.fast_node");
    if (auto found = next_node(tiers_.size())) return *found;
    return fail(ErrorCode::kUnavailable, "no NUMA node with memory for the fast tier");
  }

  Result<size_t> slow(size_t fast) const {
    if (pool_.slow_kind == "directory") return directory();
    if (pool_.slow_node) return node(*pool_.slow_node, "pool.slow_node");
    if (auto found = next_node(fast)) return *found;
    if (pool_.slow_kind == "auto") return directory();
    return fail(ErrorCode::kInvalid,
                "pool.slow_kind is \"node\", but this machine has no second NUMA node with memory: "
                "use \"auto\" or \"directory\"");
  }

 private:
  Result<size_t> node(int id, std::string_view key) const {
    for (size_t i = 0; i < tiers_.size(); ++i)
      if (tiers_[i].tier.numa_node == id) return i;
    return fail(ErrorCode::kInvalid, fmt::format("{}: NUMA node {} has no memory here", key, id));
  }
  std::optional<size_t> next_node(size_t other_than) const {
    for (size_t i = 0; i < tiers_.size(); ++i)
      if (i != other_than && !tiers_[i].tier.is_directory()) return i;
    return std::nullopt;
  }
  Result<size_t> directory() const {
    for (size_t i = 0; i < tiers_.size(); ++i)
      if (tiers_[i].tier.is_directory()) return i;
    return fail(ErrorCode::kInvalid, "pool.slow_dir is not among the tiers");
  }

  const NodeConfig::Pool& pool_;
  const std::vector<TierMeasurement>& tiers_;
};

}  // namespace

Result<double> Calibration::evict_gb_per_s() const {
  if (slow != fast + 1)
    return fail(ErrorCode::kUnavailable, fmt::format("not measured from {} to {}",
                                                     fast_tier().tier.name, slow_tier().tier.name));
  const auto& measured = fast_tier().evict_gb_per_s;
  if (measured.value) return *measured.value;
  return fail(ErrorCode::kUnavailable, measured.unavailable);
}

ProbeOptions probe_options(const NodeConfig::Probe& probe) {
  ProbeOptions options;
  options.rounds = probe.rounds;
  options.timeout = std::chrono::milliseconds(probe.timeout_ms);
  options.enough = std::min(kEnough, options.timeout);
  return options;
}

Result<Calibration> calibrate(const NodeConfig& config, const Topology& topology) {
  std::vector<std::string> directories;
  if (config.pool.slow_kind != "node") {
    std::error_code error;
    std::filesystem::create_directories(config.pool.slow_dir, error);
    if (error)
      return fail_errno(error.value(),
                        fmt::format("pool.slow_dir {}", config.pool.slow_dir.native()));
    directories.push_back(config.pool.slow_dir);
  }
  auto specs = candidate_tiers(topology, directories);
  if (!specs) return tl::unexpected(specs.error());
  const double before_s = children_cpu_s();
  auto tiers = measured_tiers(config.probe, *specs);
  if (!tiers) return tl::unexpected(tiers.error());
  auto calibration = choose_tiers(config.pool, std::move(*tiers));
  if (!calibration || !config.probe.calibrate) return calibration;
  calibration->cpu_s = children_cpu_s() - before_s;
  calibration->operations = measure_operations();
  for (const auto& what : disagreements(topology, calibration->tiers))
    spdlog::warn("tiers: {}", what);
  return calibration;
}

Result<Calibration> choose_tiers(const NodeConfig::Pool& pool, std::vector<TierMeasurement> tiers) {
  const Chooser chooser(pool, tiers);
  auto fast = chooser.fast();
  if (!fast) return tl::unexpected(fast.error());
  auto slow = chooser.slow(*fast);
  if (!slow) return tl::unexpected(slow.error());
  Calibration calibration;
  calibration.fast = *fast;
  calibration.slow = *slow;
  const auto nodes = node_count(tiers);
  calibration.choice = fmt::format(
      "{} NUMA node{} with memory: fast tier {} ({}), slow tier {} ({})", nodes,
      nodes == 1 ? "" : "s", tiers[*fast].tier.name, speed(tiers[*fast]),
      tiers[*slow].tier.is_directory() ? fmt::format("directory {}", tiers[*slow].tier.directory)
                                       : tiers[*slow].tier.name,
      speed(tiers[*slow]));
  calibration.tiers = std::move(tiers);
  return calibration;
}

PoolOptions pool_options(const NodeConfig::Pool& pool, const Calibration& calibration) {
  const auto& slow = calibration.slow_tier().tier;
  PoolOptions options;
  options.fast_dir = pool.fast_dir;
  // With one node there is nothing to choose, and no need for the right to.
  if (node_count(calibration.tiers) > 1)
    options.fast_numa_node = calibration.fast_tier().tier.numa_node;
  options.fast_budget_bytes = pool.fast_budget_bytes;
  options.slow_dir = slow.is_directory() ? pool.slow_dir : pool.slow_node_dir;
  options.slow_kind = slow.is_directory() ? "directory" : "numa";
  options.slow_numa_node = slow.numa_node;
  options.slow_budget_bytes = pool.slow_budget_bytes;
  options.workers = pool.workers;
  return options;
}

uint64_t service_time_ns(const TierMeasurement& tier, uint64_t bytes) {
  const auto& latency_ns = tier.latency_p50_ns.value;
  const auto& gb_per_s = tier.read_gb_per_s.value;
  if (!latency_ns || !gb_per_s || *gb_per_s <= 0) return 0;
  // GB/s are bytes per nanosecond.
  return static_cast<uint64_t>(*latency_ns + static_cast<double>(bytes) / *gb_per_s + 0.5);
}

}  // namespace tierpilot::agent
