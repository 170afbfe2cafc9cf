// What stands in one cell of a table: numbers and times as people and programs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierpilot {

// A finite decimal number and nothing else; nothing for any other text.
std::optional<double> parse_number(std::string_view cell);

// A point of time in nanoseconds, from 0 to the year 2255:
//   - a number: seconds, from any origin; from 1e11 on milliseconds, from 1e14 on microseconds;
//   - "2017-09-04 10:30:41", "2017-09-04T10:30:41.25Z", "2017/09/04 10:30": since 1970, taken as
//     UTC, where an offset ("+02:00") is not there.
std::optional<int64_t> parse_time_ns(std::string_view cell);

// The cell in quotes for a message: control characters as "?", cut where it is long.
std::string shown(std::string_view cell);

}  // namespace tierpilot
