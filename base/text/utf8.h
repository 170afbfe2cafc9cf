// Whether bytes are text.
#pragma once

#include <string_view>

namespace tierpilot {

// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view bytes);

}  // namespace tierpilot
