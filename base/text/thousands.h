// Long numbers for people.
#pragma once

#include <string>

namespace tierpilot {

// "1234567.89" as "1,234,567.89"; also with a minus before it.
std::string with_thousands(std::string digits);

}  // namespace tierpilot
