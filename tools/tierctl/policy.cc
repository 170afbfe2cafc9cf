// tierctl policy: who decides where tasks run.
#include <CLI/CLI.hpp>
#include <cmath>

#include "tools/cluster/message_json.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

const std::vector<Column> kColumns{{"POLICY", "/name"},
                                   {"ACTIVE", "/active"},
                                   {"LEARNS", "/learns"},
                                   {"DECISIONS", "/decisions", Format::kNumber},
                                   {"FALLBACKS", "/fallbacks", Format::kNumber},
                                   {"MEAN REWARD", "/reward_mean", Format::kNumber},
                                   {"P50 us", "/decision_us/p50", Format::kNumber},
                                   {"P99 us", "/decision_us/p99", Format::kNumber},
                                   {"DESCRIPTION", "/description"}};

Result<int> list(Context& context, ClusterConnection& connection) {
  auto answer = connection.call(connection.cluster().policyListRequest());
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"policies", messages_json(answer->getPolicies())}},
               {{.rows = "/policies", .columns = kColumns}});
}

// The wire has every setting as a double; a capacity of 1024 is not "1,024.0".
void show_whole_numbers(nlohmann::ordered_json& settings) {
  for (auto& setting : settings) {
    const double number = setting.value("value", 0.5);
    if (number == std::trunc(number) && std::abs(number) < 1e15)
      setting["value"] = static_cast<int64_t>(number);
  }
}

Result<int> show(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().policyShowRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  nlohmann::ordered_json value{{"policy", message_json(answer->getPolicy())}};
  std::vector<Table> tables{{.rows = "/policy", .columns = kColumns}};
  if (answer->getPolicy().getLearns()) {
    value["learner"] = message_json(answer->getLearner());
    show_whole_numbers(value["learner"]["settings"]);
    tables.push_back({.title = "Learner",
                      .rows = "/learner",
                      .columns = {{"Experiences", "/experiences", Format::kNumber},
                                  {"Replay size", "/replay_size", Format::kNumber},
                                  {"Replay capacity", "/replay_capacity", Format::kNumber},
                                  {"Waiting for their reward", "/pending", Format::kNumber},
                                  {"Training steps", "/training_steps", Format::kNumber},
                                  {"Loss", "/loss", Format::kNumber},
                                  {"Weights version", "/weights_version", Format::kNumber},
                                  {"Epsilon", "/epsilon", Format::kNumber}}});
    tables.push_back({.title = "Settings",
                      .rows = "/learner/settings",
                      .columns = {{"SETTING", "/name"}, {"VALUE", "/value", Format::kNumber}},
                      .empty = "none reported"});
  }
  return print(context.output, value, tables);
}

Result<int> use(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().policyUseRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"policy", message_json(answer->getPolicy())}},
               {{.rows = "/policy", .columns = kColumns}});
}

}  // namespace

void add_policy(CLI::App& app, Context& context) {
  auto* policy = app.add_subcommand("policy", "who decides where tasks run");
  policy->require_subcommand(1);
  on_chosen(*policy->add_subcommand("list", "all policies"), context,
            [&context](ClusterConnection& connection) { return list(context, connection); });
  add_by_name(*policy, context, "show", "one policy and what it has learned", show);
  add_by_name(*policy, context, "use", "let this policy decide from now on", use);
  add_policy_laboratory(*policy, context);
}

}  // namespace tierpilot::tierctl
