#include "tools/cluster/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>

namespace tierpilot {
namespace {

struct Unit {
  std::string_view name;
  double ms;
};
constexpr std::array<Unit, 6> kUnits{
    {{"ms", 1}, {"s", 1e3}, {"", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};
constexpr double kMaxMs = 3650 * 86400e3;

constexpr std::array<std::pair<double, std::string_view>, 7> kReadable{{{1, "ns"},
                                                                        {1e3, "us"},
                                                                        {1e6, "ms"},
                                                                        {1e9, "s"},
                                                                        {60e9, "min"},
                                                                        {3600e9, "h"},
                                                                        {86400e9, "d"}}};

}  // namespace

Result<int64_t> parse_duration_ms(std::string_view text) {
  double number = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (err == std::errc{} && number >= 0)  // NaN compares false
    for (const auto& [name, ms] : kUnits) {
      if (name != unit) continue;
      // What is above 0 stays so: 0 means none to some.
      if (number * ms <= kMaxMs)
        return std::max<int64_t>(std::llround(number * ms), number > 0 ? 1 : 0);
      return fail(ErrorCode::kInvalid,
                  fmt::format("'{}' is longer than ten years, {:.0f}d", text, kMaxMs / 86400e3));
    }
  return fail(
      ErrorCode::kInvalid,
      fmt::format("'{}' is not a duration: write a number and ms, s, m, h or d, as in 30s", text));
}

Result<int64_t> parse_time_ms(const std::string& text, int64_t now_ms) {
  if (const auto ago_ms = parse_duration_ms(text)) return now_ms - *ago_ms;
  for (const char* form :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm parts{};
    parts.tm_isdst = -1;
    const char* end = strptime(text.c_str(), form, &parts);
    if (!end || (*end && std::strcmp(end, "Z") != 0)) continue;
    const std::tm asked = parts;
    const std::time_t at_s = *end ? timegm(&parts) : std::mktime(&parts);
    if (parts.tm_mday == asked.tm_mday) return int64_t{at_s} * 1000;  // mktime mends 30 February
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("'{}' is not a time: write a duration ago as in 7d, or a time as in "
                          "2024-01-31 12:00",
                          text));
}

std::string format_duration_ns(double ns) {
  size_t unit = 0;
  while (unit + 1 < kReadable.size() && std::abs(ns) >= kReadable[unit + 1].first) ++unit;
  const double value = ns / kReadable[unit].first;
  const int decimals = std::abs(value) < 10 && unit > 0 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kReadable[unit].second);
}

std::string format_age(int64_t at_ms, int64_t now_ms) {
  if (at_ms == 0) return "-";
  const double age_ms = static_cast<double>(now_ms) - static_cast<double>(at_ms);
  const std::string span = format_duration_ns(std::abs(age_ms) * 1e6);
  return age_ms < 0 ? "in " + span : span + " ago";
}

}  // namespace tierpilot
