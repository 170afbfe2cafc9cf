// Durations as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

// "30s", "500ms", "1.5m", "2h", "1d"; no unit means seconds. Up to ten years.
Result<int64_t> parse_duration_ms(std::string_view text);

// When: a duration before `now_ms` ("7d"), or local time: "2024-01-31", "2024-01-31 12:00" or with
// seconds and a T; a Z behind it makes it UTC. In milliseconds since 1970.
Result<int64_t> parse_time_ms(const std::string& text, int64_t now_ms);

// Two digits or more of the unit that fits: "850 ns", "4.2 us", "13 ms", "2.5 s", "4 min", "3.1 h".
std::string format_duration_ns(double ns);

// "12 s ago", "in 3.0 min"; "-" for 0, which means never.
std::string format_age(int64_t at_ms, int64_t now_ms);

}  // namespace tierpilot
