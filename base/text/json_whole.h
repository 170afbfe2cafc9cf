// Whole numbers of JSON from anybody: nlohmann converts any number, and what is too large for its
// type is undefined then.
#pragma once

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>

namespace tierpilot {

// Throws nlohmann's type_error for what is no whole number from 0 to the type's end.
template <std::unsigned_integral Whole, class Json>
Whole whole_number(const Json& value) {
  if (!value.is_number_unsigned() ||
      value.template get<uint64_t>() > std::numeric_limits<Whole>::max())
    throw Json::type_error::create(302, "it has to be a whole number", &value);
  return value.template get<Whole>();
}

}  // namespace tierpilot
