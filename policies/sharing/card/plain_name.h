// Names from files of others, as messages and cards show them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot::sharing {

inline constexpr size_t kMostNameBytes = 80;

// What is left of a longer one ends with "..."; '?' stands for a byte that is not printable ASCII,
// for a quotation mark and for a backslash, which JSON would make longer each time it is quoted.
std::string plain_name(std::string_view name);

// kInvalid. Names of the file in `what` have to be plain.
tl::unexpected<Error> wrong_model(const std::string& model, const std::string& what);

}  // namespace tierpilot::sharing
