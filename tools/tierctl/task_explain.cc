// tierctl task explain: why the task ran where it ran, and what came of it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "tools/cluster/duration.h"
#include "tools/cluster/message_json.h"
#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/task_view.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOfShares = "sharing/";  // policies that place tasks with shares

std::string how_chosen(const ordered_json& decision) {
  if (const auto why = decision["fallback"].get<std::string>(); !why.empty())
    return "by the fallback heuristic: " + why;
  if (decision["explored"] == true) return "at random, to explore";
  return "the best candidate by this policy";
}

void add_readable_look(ordered_json& look) {
  if (look["gpu"] != "") look["unit"] = look["gpu"];
  look["verdict"] = look["chosen"] == true  ? "<- chosen"
                    : look["refused"] == "" ? "it could start there"
                                            : look["refused"];
}

void mark_chosen(ordered_json& decision) {
  auto& candidates = decision["candidates"];
  const bool tells_ranks = std::any_of(candidates.begin(), candidates.end(),
                                       [](const auto& node) { return node["ranks"] != 0; });
  for (auto& node : candidates) {
    const auto ranks = node["ranks"].get<uint32_t>();
    const bool chosen = tells_ranks                  ? ranks > 0
                        : decision["gang"].is_null() ? node["node"] == decision["node"]
                                                     : node["eligible"] == true;  // by older ones
    node["chosen"] = !chosen ? ""
                     : ranks == 0
                         ? "<- chosen"
                         : fmt::format("<- chosen for {} rank{}", ranks, ranks > 1 ? "s" : "");
  }
}

// Cells that are made for people: how it was chosen, milliseconds, marks at what was chosen.
void add_readable(ordered_json& decision, int64_t now_ms) {
  decision["how"] = how_chosen(decision);
  decision["when"] = format_age(decision["at_ms"], now_ms);
  decision["decide_us"] = decision["decide_ns"].get<double>() / 1e3;
  if (auto& reward = decision["reward"]; reward.is_object()) {
    reward["latency_ms"] = reward["latency_ns"].get<double>() / 1e6;
    const auto reference_ns = reward["reference_ns"].get<double>();
    set_or_unavailable(reward, "reference_ms",
                       reference_ns > 0 ? std::optional(reference_ns / 1e6) : std::nullopt,
                       "its node has not measured it");
  }
  mark_chosen(decision);
  for (auto& unit : decision["units"]) add_readable_look(unit);
}

// Of a task that has no node (now), with what it waits for.
std::vector<Table> waiting_tables(ordered_json& task, int64_t now_ms) {
  task["submitted"] = format_age(task["submitted_ms"], now_ms);
  std::vector<Table> tables{{.rows = "/task",
                             .columns = {{"Task", "/id"},
                                         {"State", "/state"},
                                         {"Reason", "/reason"},
                                         {"Submitted", "/submitted"},
                                         {"Decided", "/decided"}}}};
  for (auto& table : kept_back_tables(task, now_ms)) tables.push_back(std::move(table));
  return tables;
}

Table choice_table(const std::string& at, bool kept_back) {
  Table table{.rows = at,
              .columns = {{"Policy", "/policy"},
                          {"Node", "/node"},
                          {"Chosen", "/how"},
                          {"Explored", "/explored"},
                          {"Fallback", "/fallback"},
                          {"Mode", "/mode"},
                          {"Arm", "/arm"},
                          {"The policy wanted", "/proposed"},
                          {"Reason", "/reason"},
                          {"Nodes considered", "/considered", Format::kNumber},
                          {"Nodes eligible", "/eligible", Format::kNumber},
                          {"When", "/when"},
                          {"Decided in us", "/decide_us", Format::kNumber},
                          {"Weights version", "/weights_version", Format::kNumber}}};
  if (kept_back) {
    table.columns.push_back({"Kept back before, for", "/kept_back_for"});
    table.columns.push_back({"Kept back ms", "/kept_back_ms", Format::kNumber});
  }
  return table;
}

// Of a task with a share.
Table unit_choice_table(const std::string& at) {
  return {.rows = at,
          .columns = {{"Policy", "/policy"},
                      {"Node", "/node"},
                      {"Reason", "/reason"},
                      {"Units looked at", "/considered", Format::kNumber},
                      {"Of these it could start on", "/eligible", Format::kNumber},
                      {"When", "/when"},
                      {"Decided in us", "/decide_us", Format::kNumber}}};
}

Table unit_table(const std::string& title, const std::string& rows) {
  return {.title = title,
          .rows = rows,
          .columns = {{"NODE", "/node"},
                      {"UNIT", "/unit"},
                      {"FREE THOUSANDTHS", "/free_milli", Format::kNumber},
                      {"FREE MEMORY", "/free_memory_bytes", Format::kBytes},
                      {"TASKS THERE", "/tasks"},
                      {"", "/verdict"}}};
}

Table observation_table(const std::string& at) {
  return {.title = "Observation",
          .rows = at + "/observation",
          .columns = {{"Utilisation of all engines", "/utilisation", Format::kPercent},
                      {"Operations", "/operations", Format::kNumber},
                      {"Data", "/data_bytes", Format::kBytes},
                      {"Writes", "/writes"}}};
}

Table gang_table(const std::string& at) {
  return {.title = "Beside the heuristic for gangs",
          .rows = at + "/gang",
          .columns = {{"Expected hours where it was placed", "/expected_h", Format::kNumber},
                      {"The heuristic would have taken", "/heuristic"},
                      {"Expected hours there", "/heuristic_h", Format::kNumber},
                      {"Standing of the policy", "/standing"}}};
}

Table candidate_table(const std::string& at) {
  return {.title = "Candidates",
          .rows = at + "/candidates",
          .columns = {{"NODE", "/node"},
                      {"ELIGIBLE", "/eligible"},
                      {"Q", "/q", Format::kNumber},
                      {"FREE FAST", "/free_fast_bytes", Format::kBytes},
                      {"HELD FAST", "/held_fast_bytes", Format::kBytes},
                      {"HELD SLOW", "/held_slow_bytes", Format::kBytes},
                      {"UNITS TAKEN", "/assigned_units", Format::kNumber},
                      {"UNITS", "/units", Format::kNumber},
                      {"", "/chosen"}},
          .empty = "none"};
}

// R = w U + (1 - w) 1/L, or with eviction w U + (1 - w) max(beta 1/L, 1/L - Rp).
Table reward_table(const std::string& at) {
  return {.title = "Reward, from what was measured",
          .rows = at + "/reward",
          .columns = {{"Reward R", "/reward", Format::kNumber},
                      {"Utilisation U", "/utilisation", Format::kNumber},
                      {"Latency term 1/L", "/latency_term", Format::kNumber},
                      {"Eviction penalty Rp", "/penalty_term", Format::kNumber},
                      {"Data served in ms", "/latency_ms", Format::kNumber},
                      {"The fast tier alone, ms", "/reference_ms", Format::kNumber},
                      {"Evicted", "/evicted_bytes", Format::kBytes},
                      {"Eviction GB/s", "/evict_gb_per_s", Format::kNumber}}};
}

std::vector<Table> decision_tables(const ordered_json& decision, const std::string& at,
                                   const std::string& title) {
  if (decision["policy"].get<std::string>().starts_with(kOfShares)) {
    std::vector<Table> tables{unit_choice_table(at)};
    tables.back().title = title;
    if (!decision["units"].empty())
      tables.push_back(unit_table("Units, as they were then", at + "/units"));
    return tables;
  }
  std::vector<Table> tables{choice_table(at, decision["kept_back_for"] != "")};
  tables.back().title = title;
  if (!decision["observation"].is_null()) tables.push_back(observation_table(at));
  if (!decision["gang"].is_null()) tables.push_back(gang_table(at));
  tables.push_back(candidate_table(at));
  if (!decision["reward"].is_null()) tables.push_back(reward_table(at));
  return tables;
}

std::string when_decided(const ordered_json& task, bool decided) {
  if (decided) return "before, see below";
  // Of a rank nothing is decided by itself.
  const auto gang = task["gang"].get<uint64_t>();
  return gang > 0 ? fmt::format("with its gang: see task {}", gang) : "not yet";
}

Result<int> explain(Context& context, ClusterConnection& connection, uint64_t id) {
  auto request = connection.cluster().taskExplainRequest();
  request.setId(id);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  ordered_json value{{"task", task_json(answer->getTask())},
                     {"decisions", messages_json(answer->getDecisions())},
                     {"units", messages_json(answer->getUnits())}};
  auto& task = value["task"];
  const int64_t now_ms = system_clock().wall_ms();
  const bool decided = !value["decisions"].empty();
  const bool waits = task["state"] == "waiting" || task["state"] == "queued";
  std::vector<Table> tables;
  if (!context.output.json && (waits || !decided)) tables = waiting_tables(task, now_ms);
  for (auto& table : share_tables(task)) tables.push_back(std::move(table));
  if (!context.output.json)
    for (auto& unit : value["units"]) add_readable_look(unit);
  if (!value["units"].empty())
    tables.push_back(unit_table("Where it could start now, and why not", "/units"));
  for (size_t i = 0; i < value["decisions"].size(); ++i) {
    auto& decision = value["decisions"][i];
    if (!context.output.json) add_readable(decision, now_ms);
    for (auto& table : decision_tables(decision, fmt::format("/decisions/{}", i),
                                       fmt::format("Task {}, decision {}", id, i + 1)))
      tables.push_back(std::move(table));
  }
  if (!context.output.json) task["decided"] = when_decided(task, decided);
  return print(context.output, value, tables);
}

}  // namespace

void add_task_explain(CLI::App& task, Context& context) {
  auto id = std::make_shared<uint64_t>();
  auto* sub = task.add_subcommand("explain", "why it ran where it ran, and what came of it");
  sub->add_option("ID", *id)->required()->check(id_number());
  on_chosen(*sub, context, [&context, id](ClusterConnection& connection) {
    return explain(context, connection, *id);
  });
}

}  // namespace tierpilot::tierctl
