// tierctl node cordon, uncordon, drain, remove: what a node gets to do.
#include <CLI/CLI.hpp>

#include "tools/cluster/connect_arguments.h"
#include "tools/cluster/message_json.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kPollMs = 500;

struct Drain {
  std::string node;
  int64_t within_ms = 600'000;
  bool wait = false;
};

Result<ordered_json> give_order(ClusterConnection& connection, const std::string& node,
                                const char* order, int64_t within_ms = 0) {
  auto request = connection.cluster().nodeOrderRequest();
  request.setName(node);
  request.setOrder(order);
  request.setWithinMs(within_ms);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return ordered_json{{"node", message_json(answer->getNode())}};
}

Result<int> show(Context& context, const Result<ordered_json>& node) {
  if (!node) return tl::unexpected(node.error());
  return print(context.output, *node,
               {{.rows = "/node",
                 .columns = {{"Node", "/info/name"},
                             {"State", "/state"},
                             {"Tasks", "/order"},
                             {"Attempts on it", "/tasks_running", Format::kNumber},
                             {"Reason", "/reason"}}}});
}

Result<int> cordon(Context& context, ClusterConnection& connection, const std::string& name) {
  return show(context, give_order(connection, name, "cordon"));
}

Result<int> uncordon(Context& context, ClusterConnection& connection, const std::string& name) {
  return show(context, give_order(connection, name, "open"));
}

Result<int> remove(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().nodeRemoveRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"removed", name}},
               {{.rows = "", .columns = {{"Removed", "/removed"}}}});
}

Result<int> drain(Context& context, ClusterConnection& connection, const Drain& arguments) {
  auto node = give_order(connection, arguments.node, "drain", arguments.within_ms);
  // Somebody may open it again meanwhile: then there is nothing to wait for.
  while (node && arguments.wait && (*node)["node"]["order"] == "draining") {
    if (auto slept = connection.wait(connection.loop().after_ms(kPollMs)); !slept)
      return tl::unexpected(slept.error());
    auto request = connection.cluster().nodeShowRequest();
    request.setName(arguments.node);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    node = ordered_json{{"node", message_json(answer->getNode())}};
  }
  return show(context, node);
}

}  // namespace

void add_node_orders(CLI::App& node, Context& context) {
  add_by_name(node, context, "cordon", "gets no new tasks; those that it has go on", cordon);
  add_by_name(node, context, "uncordon", "gets tasks again, also after a drain", uncordon);
  auto arguments = std::make_shared<Drain>();
  auto* sub = node.add_subcommand(
      "drain", "gets no new tasks; those that do not end in time go to other nodes");
  sub->add_option("NAME", arguments->node)->required();
  add_duration(*sub, "--deadline", arguments->within_ms,
               "time that running tasks have to end; 0: none")
      ->default_str("10m");
  sub->add_flag("--wait", arguments->wait, "return when no task is left on it");
  on_chosen(*sub, context, [&context, arguments](ClusterConnection& connection) {
    return drain(context, connection, *arguments);
  });
  add_by_name(node, context, "remove", "forgets a node that is gone for good", remove);
}

}  // namespace tierpilot::tierctl
