// Cap'n Proto messages as JSON by reflection, so that what the tools print follows the schema.
#pragma once

#include <capnp/dynamic.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tierpilot {

// "readGbPerS" -> "read_gb_per_s"
std::string snake_case(std::string_view camel_case);

// Keys are the schema's names in snake case. A Measure becomes a number, or null with
// "<key>_unavailable": reason. Of a union only the set member appears. A struct that the sender did
// not set is null; numbers stay numbers whatever their width.
nlohmann::ordered_json message_json(capnp::DynamicStruct::Reader message);

// A list of structs.
nlohmann::ordered_json messages_json(capnp::DynamicList::Reader messages);

}  // namespace tierpilot
