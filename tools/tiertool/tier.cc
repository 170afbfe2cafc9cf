// tiertool tier show: what memory this machine has, and how fast it is.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "daemon/probe/active/disagreement.h"
#include "daemon/probe/active/json.h"
#include "daemon/topology/json.h"
#include "tools/tiertool/columns.h"
#include "tools/tiertool/measuring.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct ShowOptions {
  TierChoice choice;
  ProbeOptions probe;
  bool no_measure = false;
};

ordered_json with_tiers(const Topology& topology) {
  return {{"topology", topology_to_json(topology)}, {"tiers", ordered_json::array()}};
}

int show_inventory(const Context& context, const Topology& topology,
                   const std::vector<TierSpec>& tiers) {
  auto value = with_tiers(topology);
  for (const auto& tier : tiers) value["tiers"].push_back(tier_to_json(tier));
  auto columns = kTierColumns;
  columns.push_back({"DIRECTORY", "/directory"});
  return print(context.output, value,
               {{.rows = "/tiers", .columns = columns, .empty = "no memory tiers"}},
               topology.warnings);
}

int show_measured(const Context& context, const Topology& topology,
                  const std::vector<TierSpec>& tiers, const ProbeOptions& options) {
  const auto measured = measure_tiers(tiers, options);
  if (!measured) return print_error(context.output, measured.error());
  auto value = with_tiers(topology);
  for (const auto& tier : *measured) value["tiers"].push_back(measurement_to_json(tier));
  const auto disagree = disagreements(topology, *measured);
  value["disagreements"] = ordered_json::array();
  for (const auto& sentence : disagree) value["disagreements"].push_back({{"what", sentence}});
  auto columns = kTierColumns;
  columns.push_back({"CLASS", "/class"});
  for (const auto& more : {kLatencyColumns, kBandwidthColumns, kEvictionColumns, kEffortColumns})
    columns.insert(columns.end(), more.begin(), more.end());
  auto warnings = topology.warnings;
  for (auto& missing : what_is_missing(*measured, options)) warnings.push_back(std::move(missing));
  return print(context.output, value,
               {{.title = "memory tiers, fast to slow", .rows = "/tiers", .columns = columns},
                {.rows = "/tiers", .columns = kHowColumns},
                {.rows = "/disagreements",
                 .columns = {{"DISAGREEMENT", "/what"}},
                 .empty = "the kernel's tiers and HMAT do not disagree with what was measured"}},
               warnings);
}

int show(const Context& context, const ShowOptions& options) {
  const auto topology = discover_topology(context.sysroot, context.discover);
  if (!topology) return print_error(context.output, topology.error());
  const auto tiers = choose_tiers(*topology, options.choice);
  if (!tiers) return print_error(context.output, tiers.error());
  if (!context.output.json) *context.output.out << format_tree(*topology) << '\n';
  return options.no_measure || context.foreign_root || tiers->empty()
             ? show_inventory(context, *topology, *tiers)
             : show_measured(context, *topology, *tiers, options.probe);
}

}  // namespace

void add_tier(CLI::App& app, Context& context) {
  auto* tier = app.add_subcommand("tier", "memory tiers of this machine");
  tier->require_subcommand(1);
  auto* verb =
      tier->add_subcommand("show", "what this machine has, and each tier's measured figures");
  auto options = std::make_shared<ShowOptions>();
  add_tier_choice(*verb, options->choice);
  add_probe_options(*verb, options->probe);
  verb->add_flag("--no-measure", options->no_measure, "only what is there, nothing measured");
  verb->callback([&context, options] {
    context.command = [&context, options] { return show(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
