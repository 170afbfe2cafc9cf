// Enumerators and their words, once for both directions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tierpilot {

// `names` has the words of the enumerators from 0 on.
template <class Enum, size_t kCount>
std::string_view name_in(const std::array<std::string_view, kCount>& names, Enum value) {
  return names.at(static_cast<size_t>(value));
}

template <class Enum, size_t kCount>
std::optional<Enum> parse_in(const std::array<std::string_view, kCount>& names,
                             std::string_view text) {
  for (size_t i = 0; i < kCount; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace tierpilot
