// tierctl status: is the cluster well?
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "tools/cluster/duration.h"
#include "tools/cluster/message_json.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

Result<int> show_status(Context& context, ClusterConnection& connection) {
  auto answer = connection.call(connection.cluster().healthRequest());
  if (!answer) return tl::unexpected(answer.error());
  auto health = message_json(answer->getHealth());
  std::vector<std::string> warnings;
  if (const auto why = health["degraded"].get<std::string>(); !why.empty())
    warnings.push_back("the coordinator is degraded: " + why);
  if (health["nodes_up"] == 0)
    warnings.emplace_back("no node is up: tasks wait until a tierpilotd registers");
  if (health["policy_standing"] == "deposed")
    warnings.push_back("the heuristic decides, policy '" + health["policy"].get<std::string>() +
                       "' is deposed: " + health["policy_why"].get<std::string>());
  if (!context.output.json) health["up_since"] = format_age(health["started_ms"], health["now_ms"]);
  return print(context.output, {{"health", health}},
               {{.rows = "/health",
                 .columns = {{"Coordinator version", "/version"},
                             {"Started", "/up_since"},
                             {"Nodes up", "/nodes_up", Format::kNumber},
                             {"Tasks queued", "/queued", Format::kNumber},
                             {"of them, kept back", "/kept_back", Format::kNumber},
                             {"Tasks running", "/running", Format::kNumber},
                             {"Policy", "/policy"},
                             {"Its mode", "/policy_mode"},
                             {"Its standing", "/policy_standing"},
                             {"Decisions by fallback", "/fallbacks", Format::kNumber},
                             {"Rejected frames", "/rejected_frames", Format::kNumber},
                             {"Busy unit-ms since start", "/busy_unit_ms", Format::kNumber},
                             {"Capacity unit-ms", "/capacity_unit_ms", Format::kNumber}}}},
               warnings);
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  auto* status = app.add_subcommand("status", "health of the cluster");
  status->alias("cluster");
  on_chosen(*status, context,
            [&context](ClusterConnection& connection) { return show_status(context, connection); });
}

}  // namespace tierpilot::tierctl
