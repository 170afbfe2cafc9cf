#include "daemon/agent/metrics/exposed.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tierpilot::agent {
namespace {

// Powers of two, in ns: from 16 ns to 0.27 s, what a page-in from a slow disk takes.
constexpr int kLatencyFrom = 4, kLatencyTo = 28;

constexpr std::array<std::string_view, 11> kGauges{
    "pool_waiting_requests", "pool_replicas",          "pool_fast_pinned_bytes",
    "data_readers",          "data_readers_waiting",   "migrate_node_pairs",
    "placement_conflicts",   "tiers_measured_ago_s",   "swap_room_bytes",
    "swap_room_given_bytes", "placement_advised_bytes"};

bool is_gauge(const std::string& figure) {
  return std::ranges::find(kGauges, figure) != kGauges.end() || figure.ends_with("_share") ||
         figure.ends_with("_per_s") || figure.ends_with("_p50_ns") || figure.ends_with("_p99_ns") ||
         figure.ends_with("watched_processes") || figure.starts_with("placement_tracker_is");
}

struct Unit {
  std::string_view suffix, replacement;
  double scale;
};
constexpr std::array kUnits{
    Unit{"_gb_per_s", "_bytes_per_second", 1e9},
    Unit{"_ns", "_seconds", 1e-9},
    Unit{"_ms", "_seconds", 1e-3},
    Unit{"_s", "_seconds", 1},
    Unit{"_share", "_ratio", 1},
};

// POSIX's: std::regex takes the compiler seven seconds.
class Pattern {
 public:
  explicit Pattern(const char* extended) {
    if (regcomp(&compiled_, extended, REG_EXTENDED) != 0)
      throw std::logic_error(std::string("not a regular expression: ") + extended);
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // The groups of the whole text; none where it does not match.
  std::vector<std::string> groups(const std::string& text) const {
    std::vector<regmatch_t> found(compiled_.re_nsub + 1);
    if (regexec(&compiled_, text.c_str(), found.size(), found.data(), 0) != 0) return {};
    std::vector<std::string> groups;
    for (const auto& at : std::span(found).subspan(1))
      groups.push_back(
          text.substr(static_cast<size_t>(at.rm_so), static_cast<size_t>(at.rm_eo - at.rm_so)));
    return groups;
  }

 private:
  regex_t compiled_;
};

// Takes what varies out of the name and into labels.
std::string take_labels(const std::string& figure, Exposition::Labels& labels) {
  static const Pattern pair("^migrate_(node[0-9]+|other)_to_(node[0-9]+|other)_([[:alnum:]_]+)$");
  static const Pattern of_node("^(numa_hint|fault)_node([0-9]+)_([[:alnum:]_]+)$");
  static const Pattern reason("^migrate_([[:alnum:]_#]+)_pages$");
  static const Pattern tracker("^placement_tracker_([[:alnum:]_-]+)$");
  if (const auto found = pair.groups(figure); !found.empty()) {
    labels = {{"from", found[0]}, {"to", found[1]}};
    return "migrate_pair_" + found[2];
  }
  if (const auto found = of_node.groups(figure); !found.empty()) {
    labels = {{"numa_node", found[1]}};
    return found[0] + "_node_" + found[2];
  }
  if (const auto found = reason.groups(figure); !found.empty() && found[0] != "failed") {
    labels = {{"reason", found[0]}};
    return "migrate_reason_pages";
  }
  if (const auto found = tracker.groups(figure); !found.empty() && found[0] != "cpu_s") {
    labels = {{"tracker", found[0]}};
    return "placement_tracker_is";
  }
  return figure;
}

}  // namespace

ExposedName exposed_name(const std::string& figure) {
  ExposedName exposed;
  std::string name = take_labels(figure, exposed.labels);
  exposed.counter = !is_gauge(name);
  for (const auto& unit : kUnits) {
    if (!name.ends_with(unit.suffix)) continue;
    name.replace(name.size() - unit.suffix.size(), unit.suffix.size(), unit.replacement);
    exposed.scale = unit.scale;
    break;
  }
  exposed.name = "tierpilot_" + name + (exposed.counter ? "_total" : "");
  return exposed;
}

void expose(Exposition& page, const std::vector<MetricValue>& values) {
  for (const auto& [figure, value] : values) {
    if (!value || figure.starts_with("tier_")) continue;
    auto exposed = exposed_name(figure);
    const std::string help = "tierpilotd(8): " + figure.substr(0, figure.find("_node")) + ".";
    if (exposed.counter)
      page.counter(exposed.name, help, *value * exposed.scale, std::move(exposed.labels));
    else
      page.gauge(exposed.name, help, *value * exposed.scale, std::move(exposed.labels));
  }
}

void expose_tiers(Exposition& page, const Calibration& calibration) {
  const auto rate = [&page](const char* name, const char* help, const Measure& gb_per_s,
                            const Exposition::Labels& labels) {
    if (gb_per_s.value) page.gauge(name, help, *gb_per_s.value * 1e9, labels);
  };
  for (const auto& tier : calibration.tiers) {
    const Exposition::Labels labels{{"tier", tier.tier.name}, {"kind", tier.tier.kind}};
    if (tier.latency_ns.count() > 0)
      page.histogram("tierpilot_tier_latency_seconds",
                     "Latency of a dependent load; of a page-in for directories.", tier.latency_ns,
                     kLatencyFrom, kLatencyTo, labels);
    rate("tierpilot_tier_read_bytes_per_second", "Measured read bandwidth.", tier.read_gb_per_s,
         labels);
    rate("tierpilot_tier_write_bytes_per_second", "Measured write bandwidth.", tier.write_gb_per_s,
         labels);
    rate("tierpilot_tier_evict_bytes_per_second", "Measured bandwidth to the next slower tier.",
         tier.evict_gb_per_s, labels);
    rate("tierpilot_tier_promote_bytes_per_second", "Measured bandwidth back from it.",
         tier.promote_gb_per_s, labels);
  }
}

void expose_pool(Exposition& page, const PoolUsage& usage) {
  const auto tier = [&page](const char* name, uint64_t used, uint64_t budget) {
    page.gauge("tierpilot_pool_used_bytes", "Bytes of datasets in a tier of the pool.",
               static_cast<double>(used), {{"tier", name}});
    page.gauge("tierpilot_pool_budget_bytes", "Bytes that the tier may hold.",
               static_cast<double>(budget), {{"tier", name}});
  };
  tier("fast", usage.fast_used_bytes, usage.fast_budget_bytes);
  tier("slow", usage.slow_used_bytes, usage.slow_budget_bytes);
}

void expose_gpus(Exposition& page, const std::vector<GpuReading>& readings) {
  const auto gauge = [&page](const char* name, const char* help, const auto& value, double scale,
                             const std::string& gpu) {
    if (value) page.gauge(name, help, static_cast<double>(*value) * scale, {{"gpu", gpu}});
  };
  for (const auto& reading : readings) {
    gauge("tierpilot_gpu_temperature_celsius", "Temperature of a GPU.", reading.temperature_c, 1,
          reading.gpu);
    gauge("tierpilot_gpu_memory_used_bytes", "Memory of a GPU that is in use, by anybody.",
          reading.memory_used_bytes, 1, reading.gpu);
    gauge("tierpilot_gpu_busy_ratio", "Part of the time in which anything computed on a GPU.",
          reading.busy_percent, 0.01, reading.gpu);
  }
}

}  // namespace tierpilot::agent
