#include "tools/tierctl/policy_tables.h"

namespace tierpilot::tierctl {

std::vector<Table> oversight_tables(bool with_versions) {
  std::vector<Table> tables{
      {.title = "Standing",
       .rows = "/policy",
       .columns = {{"Mode", "/mode"},
                   {"Standing", "/standing"},
                   {"Because", "/why"},
                   {"Share of decisions", "/share", Format::kPercent}}},
      {.title = "Guard, since the coordinator started",
       .rows = "/guard",
       .columns = {{"On", "/on"},
                   {"Asked", "/asked", Format::kNumber},
                   {"Control decisions of the heuristic", "/control", Format::kNumber},
                   {"Held against the heuristic's choice", "/advised", Format::kNumber},
                   {"Of them, differed", "/differed", Format::kNumber},
                   {"Of those, followed", "/followed", Format::kNumber}}},
      {.rows = "/guard/faults",
       .columns = {{"UNUSABLE ANSWERS", "/name"}, {"COUNT", "/value", Format::kNumber}}},
  };
  if (with_versions) tables.push_back(version_table("/versions", "Versions of its weights"));
  tables.push_back(
      {.title = "Events, newest first",
       .rows = "/events",
       .columns = {{"WHEN", "/at_ms", Format::kTime}, {"WHAT", "/what"}, {"WHY", "/why"}},
       .empty = "none"});
  return tables;
}

Table version_table(const std::string& rows, const std::string& title) {
  return {.title = title,
          .rows = rows,
          .columns = {{"VERSION", "/number", Format::kNumber},
                      {"KEPT", "/at_ms", Format::kTime},
                      {"EXPERIENCES", "/experiences", Format::kNumber},
                      {"BATCHES", "/batches", Format::kNumber},
                      {"WEIGHTS", "/weights_version", Format::kNumber},
                      {"REWARD", "/reward/mean", Format::kNumber},
                      {"RESPONSE", "/response/mean", Format::kNumber},
                      {"WHY", "/why"}},
          .empty = "none yet"};
}

std::vector<Table> comparison_tables(bool concurrent) {
  return {{.title = concurrent ? "Measured in the guard's current round, at the same time"
                               : "Measured since the coordinator started, not at the same time",
           .rows = "/comparisons",
           .columns = {{"MEASURE", "/measure"},
                       {"A", "/first"},
                       {"DECISIONS", "/of_first/count", Format::kNumber},
                       {"MEAN", "/of_first/mean", Format::kNumber},
                       {"LOW", "/of_first/low", Format::kNumber},
                       {"HIGH", "/of_first/high", Format::kNumber},
                       {"B", "/second"},
                       {"DECISIONS", "/of_second/count", Format::kNumber},
                       {"MEAN", "/of_second/mean", Format::kNumber},
                       {"LOW", "/of_second/low", Format::kNumber},
                       {"HIGH", "/of_second/high", Format::kNumber},
                       {"A IS", "/verdict"},
                       {"JUDGED", "/judged"}}}};
}

}  // namespace tierpilot::tierctl
