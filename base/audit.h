// Who did what, for whoever looks into it later: in the log, whatever its level is, unless that is
// "off".
#pragma once

#include <string_view>

namespace tierpilot {

// One line, "audit: " and the text. Users have a part in what is in it: control characters and
// bytes that are not UTF-8 become '?', and what is too long is cut.
void audit(std::string_view text);

}  // namespace tierpilot
