// Whole numbers of JSON from anybody: nlohmann converts any number, and what is too large for its
// type is undefined then.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace tierpilot {

// Throws nlohmann's type_error for what is no whole number of the type.
template <std::integral Whole, class Json>
Whole whole_number(const Json& value) {
  const bool fits =
      value.is_number_unsigned()
          ? std::in_range<Whole>(value.template get<uint64_t>())
          : value.is_number_integer() && std::in_range<Whole>(value.template get<int64_t>());
  if (!fits) throw Json::type_error::create(302, "it has to be a whole number", &value);
  return value.template get<Whole>();
}

}  // namespace tierpilot
