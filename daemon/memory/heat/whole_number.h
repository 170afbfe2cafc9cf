// Numbers in what the kernel writes about memory.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace tierpilot {

// False unless the text is a number from its beginning to its end.
inline bool parse_whole(std::string_view text, uint64_t& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace tierpilot
