// A measured tier as the link that a replay copies over.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "policies/swap/link/link.h"

namespace tierpilot::tiertool {

inline constexpr double kLeastGbPerS = 0.01;  // a copy of 10 GB in 17 minutes

// That of the tier with this name, or else of the fastest below the first, in what `tiertool tier
// show -j` wrote. One pace holds for both ways: the slower of reading and writing.
Result<swap::Link> link_of_tier(const std::filesystem::path& path, const std::string& name);

}  // namespace tierpilot::tiertool
