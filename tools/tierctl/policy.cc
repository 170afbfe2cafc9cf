// tierctl policy: who decides where tasks and gangs run.
#include <CLI/CLI.hpp>
#include <cmath>

#include "tools/cluster/message_json.h"
#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/policy_tables.h"

namespace tierpilot::tierctl {
namespace {

const Table kKeptBack{
    .title = "Tasks kept back for a full node while it was active, since the coordinator started",
    .rows = "/policy",
    .columns = {{"Tasks that were placed since", "/kept_back", Format::kNumber},
                {"of them, on that node", "/kept_back_reached", Format::kNumber},
                {"P50 ms", "/kept_back_ms/p50", Format::kNumber},
                {"P99 ms", "/kept_back_ms/p99", Format::kNumber}}};

const std::vector<Column> kColumns{{"POLICY", "/name"},
                                   {"DECIDES", "/decides"},
                                   {"ACTIVE", "/active"},
                                   {"LEARNS", "/learns"},
                                   {"MODE", "/mode"},
                                   {"STANDING", "/standing"},
                                   {"DECISIONS", "/decisions", Format::kNumber},
                                   {"FALLBACKS", "/fallbacks", Format::kNumber},
                                   {"MEAN REWARD", "/reward_mean", Format::kNumber},
                                   {"P50 us", "/decision_us/p50", Format::kNumber},
                                   {"P99 us", "/decision_us/p99", Format::kNumber},
                                   {"DESCRIPTION", "/description"}};

const Table kOthers{
    .title =
        "Other decisions: the coordinator's configuration says which of these is used, and "
        "for gangs also 'tierctl policy use'",
    .rows = "/others",
    .columns = {{"POLICY", "/name"},
                {"ACTIVE", "/active"},
                {"DECIDES", "/decides"},
                {"MODE", "/mode"},
                {"STANDING", "/standing"},
                {"DESCRIPTION", "/description"}}};

Result<int> list(Context& context, ClusterConnection& connection) {
  auto answer = connection.call(connection.cluster().policyListRequest());
  if (!answer) return tl::unexpected(answer.error());
  nlohmann::ordered_json value{{"policies", messages_json(answer->getPolicies())},
                               {"others", messages_json(answer->getOthers())}};
  std::vector<Table> tables{{.rows = "/policies", .columns = kColumns}};
  if (!value["others"].empty()) tables.push_back(kOthers);
  return print(context.output, value, tables);
}

// The wire has settings and counts as doubles; a capacity of 1024 is not "1,024.0".
void show_whole_numbers(nlohmann::ordered_json& metrics) {
  for (auto& metric : metrics) {
    const double number = metric.value("value", 0.5);
    if (number == std::trunc(number) && std::abs(number) < 1e15)
      metric["value"] = static_cast<int64_t>(number);
  }
}

void add_learner(wire::Cluster::PolicyShowResults::Reader answer, nlohmann::ordered_json& value,
                 std::vector<Table>& tables) {
  value["learner"] = message_json(answer.getLearner());
  show_whole_numbers(value["learner"]["settings"]);
  tables.push_back({.title = "Learner",
                    .rows = "/learner",
                    .columns = {{"Began from", "/origin"},
                                {"Experiences", "/experiences", Format::kNumber},
                                {"Replay size", "/replay_size", Format::kNumber},
                                {"Replay capacity", "/replay_capacity", Format::kNumber},
                                {"Waiting for their reward", "/pending", Format::kNumber},
                                {"Training steps", "/training_steps", Format::kNumber},
                                {"Loss", "/loss", Format::kNumber},
                                {"Weights version", "/weights_version", Format::kNumber},
                                {"Epsilon", "/epsilon", Format::kNumber},
                                {"Note", "/note"}}});
  tables.push_back({.title = "Settings",
                    .rows = "/learner/settings",
                    .columns = {{"SETTING", "/name"}, {"VALUE", "/value", Format::kNumber}},
                    .empty = "none reported"});
}

Result<int> show(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().policyShowRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  nlohmann::ordered_json value{{"policy", message_json(answer->getPolicy())}};
  std::vector<Table> tables{{.rows = "/policy", .columns = kColumns}};
  if (answer->getPolicy().getKeptBack() > 0) tables.push_back(kKeptBack);
  if (!answer->getPolicy().getLearns()) return print(context.output, value, tables);
  const bool learns_here = answer->hasLearner();
  if (learns_here) add_learner(*answer, value, tables);
  value["guard"] = message_json(answer->getGuard());
  show_whole_numbers(value["guard"]["faults"]);
  if (learns_here) value["versions"] = messages_json(answer->getVersions());
  value["events"] = messages_json(answer->getEvents());
  for (auto& table : oversight_tables(learns_here)) tables.push_back(std::move(table));
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

Result<int> set_mode(Context& context, ClusterConnection& connection, const std::string& name,
                     const std::string& mode) {
  auto request = connection.cluster().policyModeRequest();
  request.setName(name);
  request.setMode(mode);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"policy", message_json(answer->getPolicy())}},
               {{.rows = "/policy", .columns = kColumns}});
}

Result<int> roll_back(Context& context, ClusterConnection& connection, const std::string& name,
                      uint64_t version) {
  auto request = connection.cluster().policyRollbackRequest();
  request.setName(name);
  request.setVersion(version);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"version", message_json(answer->getVersion())}},
               {version_table("/version", "Goes on from")});
}

Result<int> compare(Context& context, ClusterConnection& connection, const std::string& first,
                    const std::string& second) {
  auto request = connection.cluster().policyCompareRequest();
  request.setFirst(first);
  request.setSecond(second);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output,
               {{"comparisons", messages_json(answer->getComparisons())},
                {"concurrent", answer->getConcurrent()}},
               comparison_tables(answer->getConcurrent()));
}

void add_mode(CLI::App& policy, Context& context) {
  struct Arguments {
    std::string name, mode;
  };
  auto given = std::make_shared<Arguments>();
  auto* sub = policy.add_subcommand("mode", "what a policy that learns may do");
  sub->add_option("NAME", given->name)->required();
  sub->add_option("MODE", given->mode,
                  "shadow: it is asked, the heuristic decides; advise: it decides among what the "
                  "heuristic finds about as good as its own choice; enforce: it decides")
      ->required()
      ->check(CLI::IsMember({"shadow", "advise", "enforce"}));
  on_chosen(*sub, context, [&context, given](ClusterConnection& connection) {
    return set_mode(context, connection, given->name, given->mode);
  });
}

void add_rollback(CLI::App& policy, Context& context) {
  struct Arguments {
    std::string name;
    uint64_t version = 0;
  };
  auto given = std::make_shared<Arguments>();
  auto* sub = policy.add_subcommand("rollback", "go back to weights that were kept");
  sub->add_option("NAME", given->name)->required();
  sub->add_option("VERSION", given->version,
                  "As 'policy show' lists them (default: the newest that is not in use)")
      ->check(id_number())
      ->check(CLI::Range(uint64_t{1}, UINT64_MAX));
  on_chosen(*sub, context, [&context, given](ClusterConnection& connection) {
    return roll_back(context, connection, given->name, given->version);
  });
}

void add_compare(CLI::App& policy, Context& context) {
  struct Arguments {
    std::string first, second;
  };
  auto given = std::make_shared<Arguments>();
  auto* sub = policy.add_subcommand("compare", "what was measured of two policies");
  sub->add_option("A", given->first, "Default: the active one for tasks");
  sub->add_option("B", given->second, "Default: the heuristic's control decisions beside it");
  on_chosen(*sub, context, [&context, given](ClusterConnection& connection) {
    return compare(context, connection, given->first, given->second);
  });
}

}  // namespace

void add_policy(CLI::App& app, Context& context) {
  auto* policy = app.add_subcommand("policy", "who decides where tasks and gangs run");
  policy->require_subcommand(1);
  on_chosen(*policy->add_subcommand("list", "all policies"), context,
            [&context](ClusterConnection& connection) { return list(context, connection); });
  add_by_name(*policy, context, "show", "one policy and what it has learned", show);
  add_by_name(*policy, context, "use", "let this policy decide from now on, of tasks or of gangs",
              use);
  add_mode(*policy, context);
  add_rollback(*policy, context);
  add_compare(*policy, context);
  add_policy_laboratory(*policy, context);
}

}  // namespace tierpilot::tierctl
