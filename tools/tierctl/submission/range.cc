#include "tools/tierctl/submission/range.h"

#include <charconv>

namespace tierpilot::tierctl {

std::optional<std::pair<uint32_t, uint32_t>> parse_range(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<uint32_t> {
    uint32_t value = 0;
    if (digits.empty()) return value;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0
               ? std::optional(value)
               : std::nullopt;
  };
  const size_t colon = text.find(':');
  const auto least = number(text.substr(0, colon));
  const auto most = colon == text.npos ? least : number(text.substr(colon + 1));
  if (!least || !most || (*most > 0 && *most < *least)) return {};
  return std::pair(*least, *most);
}

}  // namespace tierpilot::tierctl
