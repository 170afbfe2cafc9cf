// tiertool feature: what this kernel and machine allow, and why not the rest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "daemon/memory/heat/choose.h"
#include "daemon/probe/passive/feature_probe.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

int probe(const Context& context) {
  ordered_json features = ordered_json::array();
  for (const auto& [feature, on, reason] : probe_features(context.sysroot))
    features.push_back(
        {{"feature", feature}, {"on", on}, {"state", on ? "on" : "off"}, {"reason", reason}});
  for (const auto& offer : TrackerChoice(context.sysroot, system_clock()).offers())
    features.push_back({{"feature", fmt::format("tracker {}", tracker_name(offer.traits.kind))},
                        {"on", offer.available.has_value()},
                        {"state", offer.available ? "on" : "off"},
                        {"reason", offer.available ? offer.way : offer.available.error().message}});
  return print(
      context.output, {{"features", std::move(features)}},
      {{.rows = "/features",
        .columns = {{"FEATURE", "/feature"}, {"STATE", "/state"}, {"REASON", "/reason"}}}});
}

}  // namespace

void add_feature(CLI::App& app, Context& context) {
  auto* feature = app.add_subcommand("feature", "what this kernel and machine allow");
  feature->require_subcommand(1);
  feature
      ->add_subcommand("probe",
                       "try each: loads and drops empty BPF programs and those of the daemon")
      ->callback([&context] { context.command = [&context] { return probe(context); }; });
}

}  // namespace tierpilot::tiertool
