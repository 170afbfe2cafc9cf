#include "tools/tierctl/task_view.h"

#include "base/bytes.h"
#include "tools/cluster/duration.h"
#include "tools/cluster/message_json.h"
#include "tools/output/format.h"

namespace tierpilot::tierctl {

using nlohmann::ordered_json;

namespace {

bool waits_for_unit(const ordered_json& share) {
  return share["milli"] == 0;
}

Table unit_share_table(const ordered_json& share) {
  Table table{.title = "Share of a unit", .rows = "/task/unit_share"};
  if (!waits_for_unit(share))
    table.columns = {{"Unit of its node", "/unit"},
                     {"GPU", "/gpu"},
                     {"Thousandths", "/milli", Format::kNumber},
                     {"Memory", "/memory_bytes", Format::kBytes}};
  table.columns.insert(table.columns.end(),
                       {{"Predicted by", "/predicted_by"},
                        {"Predicted thousandths", "/predicted_milli", Format::kNumber},
                        {"Predicted run, s", "/predicted_s", Format::kNumber},
                        {"Measured thousandths", "/used_milli", Format::kNumber},
                        {"Left, s", "/left_s", Format::kNumber},
                        {"Promise", "/promise"},
                        {"Left of the promise, s", "/promise_left_s", Format::kNumber},
                        {"Beside tasks", "/neighbours"},
                        {"Gave its share up", "/preemptions", Format::kNumber},
                        {"Policy", "/policy"}});
  return table;
}

}  // namespace

std::string measure_text(const ordered_json& measure) {
  const auto& value = measure["value"];
  if (!value.is_number()) return "-";
  const auto number = value.get<double>();
  const auto name = "_" + measure["name"].get<std::string>() + "_";
  constexpr double kMost = 1e18;
  if (name.find("_bytes_") != name.npos && number >= 0 && number < kMost)
    return format_bytes(static_cast<uint64_t>(number));
  if (name.ends_with("_ns_") && number >= 0) return format_duration_ns(number);
  return format_number(number);
}

ordered_json task_json(wire::Task::Reader task) {
  auto json = message_json(task);
  const auto since_submit = [&](int64_t at_ms) {
    return at_ms == 0 ? ordered_json(nullptr) : ordered_json(at_ms - task.getSubmittedMs());
  };
  json["wait_ms"] = since_submit(task.getStartedMs());
  json["response_ms"] = since_submit(task.getFinishedMs());
  if (auto& share = json["unit_share"]; share.is_object()) {
    if (waits_for_unit(share)) share["unit"] = nullptr;
    if (share["memory_bytes"] == 0) {
      share["memory_bytes"] = nullptr;
      share["memory_bytes_unavailable"] = "none was asked for or predicted";
    }
  }
  return json;
}

void add_ages(ordered_json& tasks, int64_t now_ms) {
  for (auto& task : tasks) task["submitted"] = format_age(task["submitted_ms"], now_ms);
}

const std::vector<Column>& task_columns() {
  static const std::vector<Column> columns{{"ID", "/id"},
                                           {"SUBMISSION", "/submission"},
                                           {"NAME", "/name"},
                                           {"STATE", "/state"},
                                           {"NODE", "/node"},
                                           {"SUBMITTED", "/submitted"},
                                           {"WAIT ms", "/wait_ms", Format::kNumber},
                                           {"RESPONSE ms", "/response_ms", Format::kNumber},
                                           {"REASON", "/reason"}};
  return columns;
}

std::vector<Table> kept_back_tables(ordered_json& task, int64_t now_ms) {
  auto& kept = task["kept_back"];
  if (!kept.is_object()) return {};
  kept["since"] = format_age(kept["since_ms"], now_ms);
  kept["until"] = format_age(kept["until_ms"], now_ms);
  return {{.title = "Kept back",
           .rows = "/task/kept_back",
           .columns = {{"For node", "/node"},
                       {"Since", "/since"},
                       {"Placed elsewhere at the latest", "/until"}}}};
}

std::vector<Table> checkpoint_tables(const ordered_json& task) {
  std::vector<Table> tables;
  if (task["checkpointing"].is_object())
    tables.push_back({.title = "Checkpoints that it took, also those that went for newer ones",
                      .rows = "/task/checkpointing",
                      .columns = {{"Taken", "/taken", Format::kNumber},
                                  {"Waited for each ms", "/stall_ms", Format::kNumber},
                                  {"To be taken every s", "/interval_s", Format::kNumber},
                                  {"at failures an hour", "/failures_per_hour", Format::kNumber}}});
  if (!task["checkpoints"].empty())
    tables.push_back({.title = "Checkpoints that are kept, newest first",
                      .rows = "/task/checkpoints",
                      .columns = {{"DATASET", "/name"},
                                  {"ITERATION", "/iteration", Format::kNumber},
                                  {"SIZE", "/bytes", Format::kBytes},
                                  {"NODES", "/nodes"},
                                  {"OF", "/nodes_wanted"},
                                  {"SAFE", "/safe"},
                                  {"WAITED ms", "/stall_ms", Format::kNumber},
                                  {"COPYING ms", "/copy_ms", Format::kNumber}}});
  return tables;
}

std::vector<Table> share_tables(const ordered_json& task) {
  const std::vector<Column> gains{{"Loss left", "/loss_left", Format::kPercent},
                                  {"Predicted to go in the next period", "/gain", Format::kPercent},
                                  {"With one unit more", "/gain_of_one_more", Format::kPercent}};
  std::vector<Table> tables;
  if (const auto& share = task["share"]; share.is_object()) {
    tables.push_back({.title = "Cores, as long as it runs",
                      .rows = "/task/share",
                      .columns = {{"Units", "/units", Format::kNumber},
                                  {"Cores", "/cores", Format::kNumber},
                                  {"Since", "/since_ms", Format::kTime},
                                  {"Allocator", "/allocator"},
                                  {"Why", "/reason"}}});
    auto& columns = tables.back().columns;
    columns.insert(columns.end(), gains.begin(), gains.end());
  }
  if (const auto& share = task["unit_share"]; share.is_object())
    tables.push_back(unit_share_table(share));
  if (task["unit_share"].is_object() && !task["unit_share"]["slow_downs"].empty())
    tables.push_back({.title = "Of its speed it is thought to keep, beyond what its share takes",
                      .rows = "/task/unit_share/slow_downs",
                      .columns = {{"BESIDE", "/task"},
                                  {"NAME", "/name"},
                                  {"KEEPS", "/keeps", Format::kPercent},
                                  {"AT LEAST", "/keeps_at_least", Format::kPercent},
                                  {"THE OTHER KEEPS", "/neighbour_keeps", Format::kPercent},
                                  {"TOLD BY", "/by"}}});
  if (!task["shared_with"].empty())
    tables.push_back({.title = "The others on its node, those with the most cores first",
                      .rows = "/task/shared_with",
                      .columns = {{"TASK", "/task"},
                                  {"NAME", "/name"},
                                  {"CORES", "/cores", Format::kNumber},
                                  {"LOSS LEFT", "/loss_left", Format::kPercent},
                                  {"GAIN", "/gain", Format::kPercent},
                                  {"OF ONE MORE", "/gain_of_one_more", Format::kPercent},
                                  {"WHY", "/reason"}}});
  return tables;
}

bool has_ended(wire::Task::Reader task) {
  const auto state = task.getState();
  return state == "succeeded" || state == "failed" || state == "cancelled";
}

}  // namespace tierpilot::tierctl
