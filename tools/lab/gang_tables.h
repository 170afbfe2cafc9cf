// What `tierctl policy evaluate --suite gangs` prints of the values of gang_rows.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/lab/command.h"

namespace tierpilot::lab {

// Of made-up failures: /rows, /overall, /goals.
void print_gang_tables(const Output& output, nlohmann::ordered_json value);
// Of a record: /rows, /sums.
void print_replay_tables(const Output& output, nlohmann::ordered_json value);

// Of ways to train: /sums.
void print_comparison_table(const Output& output, const nlohmann::ordered_json& value);

}  // namespace tierpilot::lab
