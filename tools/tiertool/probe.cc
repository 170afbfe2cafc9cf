// tiertool probe latency|bandwidth|eviction|operations: one kind of figure, measured now.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/probe/active/json.h"
#include "tools/tiertool/columns.h"
#include "tools/tiertool/measuring.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct Probe {
  TierChoice choice;
  ProbeOptions options;
  std::vector<Column> columns;
};

// An eviction runs between neighbours, so all tiers are measured whichever are asked for.
Result<std::vector<TierMeasurement>> measure(const Topology& topology, const Probe& probe) {
  auto choice = probe.choice;
  const auto chosen = choose_tiers(topology, choice);
  if (!chosen) return tl::unexpected(chosen.error());
  if (probe.options.eviction) choice.names.clear();
  return choose_tiers(topology, choice).and_then([&probe](const auto& tiers) {
    return measure_tiers(tiers, probe.options);
  });
}

int run(const Context& context, const Probe& probe) {
  if (context.foreign_root) {
    print_error(context.output, {ErrorCode::kInvalid,
                                 "--sysroot shows another machine, and a probe measures this one"});
    return kExitUsage;
  }
  const auto topology = discover_topology(context.sysroot, context.discover);
  if (!topology) return print_error(context.output, topology.error());
  auto measured = measure(*topology, probe);
  if (!measured) return print_error(context.output, measured.error());
  const auto warnings = what_is_missing(*measured, probe.options);
  ordered_json value{{"tiers", ordered_json::array()}};
  const auto& names = probe.choice.names;
  for (const auto& tier : *measured)
    if (names.empty() || std::count(names.begin(), names.end(), tier.tier.name))
      value["tiers"].push_back(measurement_to_json(tier));
  auto columns = kTierColumns;
  columns.insert(columns.end(), probe.columns.begin(), probe.columns.end());
  columns.insert(columns.end(), kEffortColumns.begin(), kEffortColumns.end());
  return print(context.output, value,
               {{.rows = "/tiers", .columns = columns},
                {.rows = "/tiers", .columns = {{"TIER", "/tier"}, {"METHOD", "/method"}}}},
               warnings);
}

void add_verb(CLI::App& object, Context& context, const std::string& name, const std::string& help,
              Probe probe) {
  auto* verb = object.add_subcommand(name, help);
  auto shared = std::make_shared<Probe>(std::move(probe));
  add_tier_choice(*verb, shared->choice);
  add_probe_options(*verb, shared->options);
  verb->callback([&context, shared] {
    context.command = [&context, shared] { return run(context, *shared); };
  });
}

int run_operations(const Context& context) {
  return print(
      context.output, {{"operations", operations_to_json(measure_operations())}},
      {{.rows = "/operations",
        .columns = {
            {"float32 operations/s, one core", "/float32_ops_per_s", Format::kNumber},
            {"int32 operations/s, one core", "/int32_ops_per_s", Format::kNumber},
            {"float32 operations for an int32 one", "/float32_ops_per_int32_op", Format::kNumber},
            {"method", "/method"}}}});
}

}  // namespace

void add_probe(CLI::App& app, Context& context) {
  auto* probe = app.add_subcommand("probe", "measure one kind of figure");
  probe->require_subcommand(1);
  add_verb(*probe, context, "latency", "access latency, by dependent loads",
           {.options = {.bandwidth = false, .eviction = false}, .columns = kLatencyColumns});
  add_verb(*probe, context, "bandwidth", "streaming read and write bandwidth",
           {.options = {.latency = false, .eviction = false}, .columns = kBandwidthColumns});
  add_verb(*probe, context, "eviction", "moving real pages to the next slower tier and back",
           {.options = {.latency = false, .bandwidth = false}, .columns = kEvictionColumns});
  probe->add_subcommand("operations", "arithmetic operations a second of one core")
      ->callback([&context] { context.command = [&context] { return run_operations(context); }; });
}

}  // namespace tierpilot::tiertool
