#include "tools/tiertool/measuring.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace tierpilot::tiertool {
namespace {

void note(std::vector<std::string>& missing, const std::string& tier, std::string_view what,
          const Measure& measure) {
  if (!measure.value)
    missing.push_back(fmt::format("{}: no {}: {}", tier, what, measure.unavailable));
}

}  // namespace

void add_tier_choice(CLI::App& verb, TierChoice& choice) {
  verb.add_option("--dir", choice.directories, "take this directory as a tier too (repeatable)")
      ->type_name("DIR");
  verb.add_option("--tier", choice.names, "only this tier (repeatable)")->type_name("NAME");
}

void add_probe_options(CLI::App& verb, ProbeOptions& options) {
  verb.add_option("--rounds", options.rounds, "measure each tier this often")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  verb.add_option("--footprint", options.node_footprint_bytes,
                  "of a node, in bytes or as 64MiB; four times the last-level cache unless given")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1} << 16, uint64_t{1} << 36));
  verb.add_option_function<int>(
          "--timeout", [&options](int seconds) { options.timeout = std::chrono::seconds(seconds); },
          "stop measuring after this long, 20 s unless given")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 3600));
}

Result<std::vector<TierSpec>> choose_tiers(const Topology& topology, const TierChoice& choice) {
  auto tiers = candidate_tiers(topology, choice.directories);
  if (!tiers) return tiers;
  std::vector<std::string> known;
  for (const auto& tier : *tiers) known.push_back(tier.name);
  for (const auto& name : choice.names)
    if (!std::count(known.begin(), known.end(), name))
      return fail(ErrorCode::kNotFound, fmt::format("tier '{}' does not exist; this machine has {}",
                                                    name, fmt::join(known, ", ")));
  if (!choice.names.empty())
    std::erase_if(*tiers, [&choice](const TierSpec& tier) {
      return !std::count(choice.names.begin(), choice.names.end(), tier.name);
    });
  return tiers;
}

std::vector<std::string> what_is_missing(const std::vector<TierMeasurement>& tiers,
                                         const ProbeOptions& options) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < tiers.size(); ++i) {
    const auto& tier = tiers[i];
    if (options.latency) note(missing, tier.tier.name, "latency", tier.latency_p50_ns);
    if (options.bandwidth) note(missing, tier.tier.name, "read bandwidth", tier.read_gb_per_s);
    if (options.bandwidth) note(missing, tier.tier.name, "write bandwidth", tier.write_gb_per_s);
    if (!options.eviction || i + 1 == tiers.size()) continue;  // the slowest evicts to nowhere
    note(missing, tier.tier.name, "eviction bandwidth", tier.evict_gb_per_s);
    note(missing, tier.tier.name, "promotion bandwidth", tier.promote_gb_per_s);
  }
  return missing;
}

}  // namespace tierpilot::tiertool
