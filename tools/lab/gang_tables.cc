#include "tools/lab/gang_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/lab/gang_rows.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

std::string percent(const ordered_json& estimate) {
  if (!has_mean(estimate)) return "-";
  auto text = fmt::format("{:+.1f}", 100 * estimate["mean"].get<double>());
  if (estimate["ci95"].is_number())
    text += fmt::format(" ± {:.1f}", 100 * estimate["ci95"].get<double>());
  return text;
}

double mean_of(const ordered_json& row, const char* measure) {
  const auto& away = row["differences"][measure];
  return has_mean(away) ? away["mean"].get<double>() : 0;
}

void show_rows_worst_first(ordered_json& rows) {
  for (auto& row : rows)
    for (const char* name : {"makespan_h", "lost_unit_h"})
      row[std::string("difference_") + name] = percent(row["differences"][name]);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return mean_of(a, "makespan_h") > mean_of(b, "makespan_h");
  });
}

std::vector<Column> row_columns() {
  return {{"GPUS", "/gpus", Format::kNumber},
          {"NODE", "/per_node", Format::kNumber},
          {"FAILURES", "/failures"},
          {"PER GPU-HOUR", "/failures_per_gpu_h", Format::kNumber},
          {"JOBS", "/jobs"},
          {"DATA", "/data"},
          {"POLICY", "/policy"},
          {"BEST RIVAL", "/best_rival"}};
}

std::vector<Column> replay_columns() {
  return {{"FROM DAY", "/from_day", Format::kNumber},
          {"JOBS", "/jobs"},
          {"POLICY", "/policy"},
          {"BEST RIVAL", "/best_rival"}};
}

std::string rows_table(const ordered_json& value, std::vector<Column> columns) {
  for (const Column& column : {Column{"MAKESPAN h", "/makespan_h/mean", Format::kNumber},
                               {"OFF %", "/difference_makespan_h"},
                               {"BOUND h", "/bound_h/mean", Format::kNumber},
                               {"MEAN h", "/completion_mean_h/mean", Format::kNumber},
                               {"P99 h", "/completion_p99_h/mean", Format::kNumber},
                               {"FETCH GPU-h", "/fetch_unit_h/mean", Format::kNumber},
                               {"RESTARTS", "/restarts/mean", Format::kNumber},
                               {"LOST GPU-h", "/lost_unit_h/mean", Format::kNumber},
                               {"OFF %", "/difference_lost_unit_h"},
                               {"UTILISED", "/utilisation/mean", Format::kPercent},
                               {"FAIRNESS", "/fairness/mean", Format::kNumber}})
    columns.push_back(column);
  return format_table(value, {.title = "Every row, worst first; differences from the best rival of "
                                       "the row, paired by seed, %",
                              .rows = "/rows",
                              .columns = std::move(columns)});
}

}  // namespace

void print_gang_tables(const Output& output, ordered_json value) {
  show_rows_worst_first(value["rows"]);
  for (const char* table : {"overall", "goals"})
    for (auto& row : value[table])
      for (auto& [key, cell] : row.items())
        if (cell.is_number_float())
          cell = fmt::format("{:+.1f}", 100 * cell.get<double>());
        else if (cell.is_null())
          cell = "-";
  *output.out << format_table(value,
                              {.title = "Over all rows, against the best rival of the row, %",
                               .rows = "/overall",
                               .columns = {{"POLICY", "/policy"},
                                           {"MAKESPAN", "/makespan_median"},
                                           {"WORST", "/makespan_worst"},
                                           {"MEAN COMPLETION", "/completion_median"},
                                           {"LOST GPU-HOURS", "/lost_median"}}})
              << '\n'
              << format_table(value,
                              {.title = "Means of seeds, of policies that know no failures to "
                                        "come, in the median row where rates differ, %",
                               .rows = "/goals",
                               .columns = {{"POLICY", "/policy"},
                                           {"FAILURES", "/level"},
                                           {"MAKESPAN TO CAPACITY-AWARE", "/makespan_to_capacity"},
                                           {"LOST", "/lost_to_capacity"},
                                           {"MAKESPAN TO SPREAD", "/makespan_to_spread"},
                                           {"LOST", "/lost_to_spread"},
                                           {"ROWS > 1 % OVER BEST", "/rows_over_best"},
                                           {"OF", "/rows"},
                                           {"WORST", "/worst_to_best"},
                                           {"TO CLAIRVOYANT, 64 GPUS", "/to_clairvoyant"}}})
              << '\n'
              << rows_table(value, row_columns());
}

namespace {

std::string sums_table(ordered_json value, std::string title, std::string kind) {
  for (auto& row : value["sums"])
    for (const char* name : {"makespan_h", "completion_mean_h", "lost_unit_h"})
      row[std::string("difference_") + name] = percent(row["differences"][name]);
  return format_table(value,
                      {.title = std::move(title),
                       .rows = "/sums",
                       .columns = {{std::move(kind), "/kind"},
                                   {"POLICY", "/policy"},
                                   {"MAKESPANS h", "/makespan_h/mean", Format::kNumber},
                                   {"OFF %", "/difference_makespan_h"},
                                   {"MEAN COMPLETION OFF %", "/difference_completion_mean_h"},
                                   {"RESTARTS", "/restarts/mean", Format::kNumber},
                                   {"LOST GPU-h", "/lost_unit_h/mean", Format::kNumber},
                                   {"OFF %", "/difference_lost_unit_h"}}});
}

std::string rival_of(const ordered_json& value) {
  return value["sums"].front()["rival"].get<std::string>();
}

}  // namespace

void print_replay_tables(const Output& output, ordered_json value) {
  show_rows_worst_first(value["rows"]);
  *output.out << sums_table(value,
                            fmt::format("All workloads of the second half together; differences "
                                        "from {}, paired by seed, %",
                                        rival_of(value)),
                            "JOBS")
              << '\n'
              << rows_table(value, replay_columns());
}

void print_comparison_table(const Output& output, const ordered_json& value) {
  *output.out << sums_table(
      value, fmt::format("Ways to train; differences from {}, paired by seed, %", rival_of(value)),
      "FAILURES");
}

}  // namespace tierpilot::lab
