// Text that others wrote, for a terminal or a log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tierpilot {

// Control characters, those of ISO 6429 (C1) too, as '?': a terminal obeys them, and a log's line
// would end. Where the text is not UTF-8, every byte beyond ASCII as well.
std::string printable(std::string_view text);
// Of longer text only so many bytes, or a few less for whole characters, and "...".
std::string printable(std::string_view text, size_t most_bytes);

}  // namespace tierpilot
