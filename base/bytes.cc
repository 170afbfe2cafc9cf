#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace tierpilot {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"KiB", 1024.0},
                                       {"MiB", 1048576.0},
                                       {"GiB", 1073741824.0},
                                       {"TiB", 1099511627776.0},
                                       {"KB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12}}};

constexpr double kMost_bytes = 9.0e18;

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (err == std::errc{} && std::isfinite(number) && number >= 0)
    for (const auto& [name, factor] : kUnits) {
      if (name != unit) continue;
      // 0 means none to some.
      if (number > 0 && number * factor < 1)
        return fail(ErrorCode::kInvalid, fmt::format("'{}' is less than a byte", text));
      if (number * factor < kMost_bytes) return static_cast<uint64_t>(number * factor);
      return fail(ErrorCode::kInvalid,
                  fmt::format("'{}' is too large: sizes are below {:.0f}TiB", text,
                              std::floor(kMost_bytes / 1099511627776.0)));
    }
  return fail(ErrorCode::kInvalid,
              fmt::format("'{}' is not a size: write a number and a unit, as in 64MiB", text));
}

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace tierpilot
