#include "tools/output/format.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text/printable.h"
#include "base/text/thousands.h"

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

std::string format_text(const ordered_json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const auto& item : value) items.push_back(format_text(item));
    return fmt::format("{}", fmt::join(items, ", "));
  }
  return printable(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string format_time(int64_t wall_ms) {
  const time_t seconds = static_cast<time_t>(wall_ms / 1000);
  std::tm local{};
  if (!localtime_r(&seconds, &local)) return fmt::format("{} ms", wall_ms);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

std::string format_number(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size >= 99.95)
    return size < 1e15 ? with_thousands(fmt::format("{:.0f}", value))
                       : fmt::format("{:.3g}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

std::string format_cell(const ordered_json& value, Format format) {
  if (!value.is_number() || format == Format::kText) return format_text(value);
  switch (format) {
    case Format::kBytes:
      return format_bytes(value.get<double>() > 0 ? value.get<uint64_t>() : 0);
    case Format::kPercent:
      return fmt::format("{:.1f} %", value.get<double>() * 100);
    case Format::kTime:
      return value == 0 ? "-" : format_time(value.get<int64_t>());
    case Format::kNumber:
    case Format::kText:
      break;
  }
  if (value.is_number_integer()) return with_thousands(value.dump());
  return format_number(value.get<double>());
}

}  // namespace tierpilot
