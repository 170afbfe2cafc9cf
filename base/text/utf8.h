// Whether bytes are text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tierpilot {

// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view bytes);
// Of a longer text the first `most` bytes, or less, as no character is cut, and "...".
std::string beginning(std::string text, size_t most);

}  // namespace tierpilot
