// Cells: one JSON value as the text a person reads.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/output/output.h"

namespace tierpilot {

std::string format_cell(const nlohmann::ordered_json& value, Format format);
// "1,234,567", "12.3", "0.00271".
std::string format_number(double value);
// Columns a UTF-8 text takes, one per code point.
size_t display_width(std::string_view text);

}  // namespace tierpilot
