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
  if (!context.output.json) {
    health["up_since"] = format_age(health["started_ms"], health["now_ms"]);
    const auto capacity = health["capacity_unit_ms"].get<double>();
    if (capacity > 0) health["busy_share"] = health["busy_unit_ms"].get<double>() / capacity;
  }
  return print(context.output, {{"health", health}},
               {{.rows = "/health",
                 .columns = {{"Coordinator version", "/version"},
                             {"Started", "/up_since"},
                             {"Nodes up", "/nodes_up", Format::kNumber},
                             {"Tasks queued", "/queued", Format::kNumber},
                             {"of them, kept back", "/kept_back", Format::kNumber},
                             {"Tasks assigned", "/assigned", Format::kNumber},
                             {"Tasks running", "/running", Format::kNumber},
                             {"Policy", "/policy"},
                             {"Its mode", "/policy_mode"},
                             {"Its standing", "/policy_standing"},
                             {"Decisions by fallback", "/fallbacks", Format::kNumber},
                             {"Rejected frames", "/rejected_frames", Format::kNumber},
                             {"Units busy since start", "/busy_share", Format::kPercent}}}},
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
