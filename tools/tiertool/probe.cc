// tiertool probe latency|bandwidth|eviction|operations: one kind of figure, measured now.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/probe/active/json.h"
#include "daemon/probe/active/sweep.h"
#include "tools/tiertool/columns.h"
#include "tools/tiertool/measuring.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

// A sweep: its member in JSON, its table, its points.
struct Detail {
  std::string member;
  std::string title;
  std::vector<SweepPoint> (*points)(const std::vector<TierSpec>&);
  std::vector<Column> columns;
};

struct Probe {
  TierChoice choice;
  ProbeOptions options;
  std::vector<Column> columns;
  std::vector<Detail> details;  // with --detail
  bool detailed = false;
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

// One sweep over the tiers that were chosen, as a member of the value and a table below the others.
Status add_detail(const std::vector<TierMeasurement>& measured, const Probe& probe,
                  const Detail& detail, ordered_json& value, std::vector<Table>& tables) {
  std::vector<TierSpec> tiers;
  for (const auto& tier : measured) tiers.push_back(tier.tier);
  const auto& names = probe.choice.names;
  auto points = detail.points(tiers);
  if (!names.empty())
    std::erase_if(points, [&](const SweepPoint& point) {
      return !std::count(names.begin(), names.end(), tiers[point.tier].name);
    });
  const auto rows = run_sweep(tiers, points, probe.options);
  if (!rows) return tl::unexpected(rows.error());
  auto& list = value[detail.member] = ordered_json::array();
  for (const auto& row : *rows) list.push_back(sweep_row_to_json(row));
  tables.push_back({.title = detail.title,
                    .rows = "/" + detail.member,
                    .columns = detail.columns,
                    .empty = "nothing to measure"});
  return {};
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
  std::vector<Table> tables{{.rows = "/tiers", .columns = columns},
                            {.rows = "/tiers", .columns = kHowColumns}};
  if (probe.detailed)
    for (const auto& detail : probe.details)
      if (auto status = add_detail(*measured, probe, detail, value, tables); !status)
        return print_error(context.output, status.error());
  return print(context.output, value, tables, warnings);
}

void add_verb(CLI::App& object, Context& context, const std::string& name, const std::string& help,
              Probe probe) {
  auto* verb = object.add_subcommand(name, help);
  auto shared = std::make_shared<Probe>(std::move(probe));
  add_tier_choice(*verb, shared->choice);
  add_probe_options(*verb, shared->options);
  verb->add_flag("--detail", shared->detailed, "and over what it depends on, point by point");
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
           {.options = {.bandwidth = false, .eviction = false},
            .columns = kLatencyColumns,
            .details = {{"latency_by_pages", "by initiator and page size", latency_points,
                         kLatencyDetailColumns},
                        {"latency_by_load", "under load", loaded_points, kLoadedDetailColumns}}});
  add_verb(*probe, context, "bandwidth", "streaming read, write and copy bandwidth",
           {.options = {.latency = false, .eviction = false},
            .columns = kBandwidthColumns,
            .details = {{"bandwidth_by_threads", "by threads", bandwidth_points,
                         kBandwidthDetailColumns}}});
  add_verb(
      *probe, context, "eviction", "moving real pages to the next slower tier and back",
      {.options = {.latency = false, .bandwidth = false},
       .columns = kEvictionColumns,
       .details = {{"moves_by_batch", "by page size and batch", move_points, kMoveDetailColumns}}});
  probe->add_subcommand("operations", "arithmetic operations a second of one core")
      ->callback([&context] { context.command = [&context] { return run_operations(context); }; });
}

}  // namespace tierpilot::tiertool
