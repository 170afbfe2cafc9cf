// Tasks as tierctl shows them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rpc/cluster.capnp.h"
#include "tools/output/output.h"

namespace tierpilot::tierctl {

// The message, plus "wait_ms" (submit to start) and "response_ms" (submit to finish), null while
// they are not known yet.
nlohmann::ordered_json task_json(wire::Task::Reader task);

// Adds "submitted": "12 s ago" to every task of an array; for tables only.
void add_ages(nlohmann::ordered_json& tasks, int64_t now_ms);

const std::vector<Column>& task_columns();  // of a list

// What "/task" waits for if it is kept back, for people; nothing for any other task.
std::vector<Table> kept_back_tables(nlohmann::ordered_json& task, int64_t now_ms);

// What an elastic task has of its node, and what those have that it shares it with.
std::vector<Table> checkpoint_tables(const nlohmann::ordered_json& task);
std::vector<Table> share_tables(const nlohmann::ordered_json& task);
// The value of a measure that the job reports: its name may say that it is bytes or nanoseconds.
std::string measure_text(const nlohmann::ordered_json& measure);
bool has_ended(wire::Task::Reader task);

}  // namespace tierpilot::tierctl
