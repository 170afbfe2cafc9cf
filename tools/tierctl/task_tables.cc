#include "tools/tierctl/task_tables.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/tierctl/task_view.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;
using Columns = std::vector<Column>;

void drop(Columns& columns, std::string_view pointer) {
  std::erase_if(columns, [&](const Column& each) { return each.pointer == pointer; });
}

void add(Columns& columns, const Columns& more) {
  columns.insert(columns.end(), more.begin(), more.end());
}

Columns columns_of_any() {
  return {{"Task", "/id"},
          {"Submission", "/submission"},
          {"Name", "/name"},
          {"State", "/state"},
          {"Reason", "/reason"},
          {"Command", "/command_line"},
          {"Datasets", "/dataset_uses"},
          {"Units", "/spec/units", Format::kNumber},
          {"Units at most", "/spec/max_units", Format::kNumber},
          {"Memory limit", "/memory_limit"},
          {"Memory tier", "/memory_tier"},
          {"Room for swapping", "/spec/swap_room_bytes", Format::kBytes},
          {"float operations", "/spec/float_operations", Format::kNumber},
          {"int32 operations", "/spec/int_operations", Format::kNumber},
          {"After", "/spec/after"},
          {"User", "/user"},
          {"Policy", "/policy"},
          {"Node", "/node"},
          {"Attempt", "/attempt"},
          {"Submitted", "/submitted_ms", Format::kTime},
          {"Wait ms", "/wait_ms", Format::kNumber},
          {"Response ms", "/response_ms", Format::kNumber}};
}

Columns columns_of(const ordered_json& task) {
  auto columns = columns_of_any();
  const auto& spec = task["spec"];
  if (!spec.is_object() || spec.value("max_units", 0) == 0) drop(columns, "/spec/max_units");
  if (!spec.is_object() || spec.value("swap_room_bytes", uint64_t{0}) == 0)
    drop(columns, "/spec/swap_room_bytes");
  if (spec.is_object() && spec.value("quality", ordered_json()).is_object())
    add(columns, {{"Measure", "/spec/quality/measure"},
                  {"Is to rise", "/spec/quality/rises"},
                  {"Weight", "/spec/quality/weight", Format::kNumber},
                  {"Goal", "/spec/quality/goal", Format::kNumber},
                  {"Deadline, ms", "/spec/quality/deadline_ms", Format::kNumber}});
  if (spec.is_object() && spec["gang"].is_object())
    add(columns, {{"Ranks", "/spec/gang/ranks"},
                  {"Engine", "/spec/gang/engine"},
                  {"GPUs per rank", "/spec/gang/gpus_per_rank"},
                  {"Restarts", "/restarts"}});
  if (!task.value("width", "").empty())
    add(columns, {{"Ranks at most", "/spec/gang/max_ranks"}, {"Why not more now", "/width"}});
  return columns;
}

Table ranks_table() {
  return {.title = "Ranks",
          .rows = "/task/ranks",
          .columns = {{"RANK", "/rank"},
                      {"TASK", "/id"},
                      {"STATE", "/state"},
                      {"NODE", "/node"},
                      {"CPU UNITS", "/cpu_units"},
                      {"GPUS", "/gpus"},
                      {"PID", "/pid"},
                      {"END", "/exit/how"},
                      {"CODE", "/exit/code"},
                      {"REASON", "/reason"}}};
}

void add_progress(std::vector<Table>& tables, const ordered_json& progress) {
  const auto last = fmt::format("/task/progress/{}", progress.size() - 1);
  tables.push_back({.title = "Progress, the last that it said",
                    .rows = last,
                    .columns = {{"At", "/at_ms", Format::kTime},
                                {"Iteration", "/iteration", Format::kNumber},
                                {"of", "/iterations", Format::kNumber},
                                {"Samples", "/samples", Format::kNumber},
                                {"Loss", "/loss", Format::kNumber}}});
  if (!progress.back()["measures"].empty())
    tables.push_back({.title = "Measures, as it said them then",
                      .rows = last + "/measures",
                      .columns = {{"MEASURE", "/name"}, {"VALUE", "/text"}}});
}

Table served_table() {
  return {.title = "Data, as served",
          .rows = "/task/served",
          .columns = {{"In the fast tier already", "/local_bytes", Format::kBytes},
                      {"Promoted from the slow tier", "/promoted_bytes", Format::kBytes},
                      {"Fetched from other nodes", "/fetched_bytes", Format::kBytes},
                      {"Evicted to make room", "/evicted_bytes", Format::kBytes},
                      {"Service latency ms", "/latency_ms", Format::kNumber},
                      {"of it, waiting ms", "/queued_ms", Format::kNumber},
                      {"making room ms", "/evict_ms", Format::kNumber},
                      {"promoting ms", "/promote_ms", Format::kNumber},
                      {"fetching ms", "/fetch_ms", Format::kNumber},
                      {"The fast tier's own ms", "/reference_ms", Format::kNumber},
                      {"Eviction GB/s then", "/evict_gb_per_s", Format::kNumber}}};
}

void add_end(std::vector<Table>& tables, const ordered_json& exit) {
  tables.push_back({.title = "End",
                    .rows = "/task/exit",
                    .columns = {{"How", "/how"},
                                {"Code", "/code"},
                                {"Reason", "/reason"},
                                {"CPU user ms", "/cpu_user_ms", Format::kNumber},
                                {"CPU system ms", "/cpu_system_ms", Format::kNumber},
                                {"Peak memory", "/max_resident_bytes", Format::kBytes},
                                {"Memory tier", "/memory_tier"},
                                {"Wall ms", "/wall_ms", Format::kNumber},
                                {"Block reads", "/io_read_bytes", Format::kBytes},
                                {"Block writes", "/io_write_bytes", Format::kBytes}}});
  if (!exit["memory"].empty())
    tables.push_back({.title = "What the kernel did with its memory",
                      .rows = "/task/exit/memory",
                      .columns = {{"FIGURE", "/name"}, {"VALUE", "/value", Format::kNumber}}});
}

}  // namespace

std::vector<Table> task_tables(const ordered_json& task) {
  std::vector<Table> tables{{.rows = "/task", .columns = columns_of(task)}};
  if (!task["ranks"].empty()) tables.push_back(ranks_table());
  for (auto& table : share_tables(task)) tables.push_back(std::move(table));
  if (!task["progress"].empty()) add_progress(tables, task["progress"]);
  for (auto& table : checkpoint_tables(task)) tables.push_back(std::move(table));
  if (!task["served"].is_null()) tables.push_back(served_table());
  if (!task["exit"].is_null()) add_end(tables, task["exit"]);
  return tables;
}

}  // namespace tierpilot::tierctl
