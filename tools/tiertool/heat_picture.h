// Heat maps as text and as SVG.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/memory/heat/heat_map.h"
#include "tools/tiertool/watching.h"

namespace tierpilot::tiertool {

// Of [start, end) in `width` characters, from ' ' (nothing seen) over '.' to '@' (`hottest`); steps
// are logarithmic, as heat spans orders of magnitude. '?' is not tracked, or not known yet.
std::string heat_line(std::span<const HeatRegion> regions, uint64_t start, uint64_t end,
                      size_t width, float hottest);

// Time from left to right, addresses from top to bottom: what is tracked in the last frame, without
// the gaps between mappings.
std::string heat_svg(const std::vector<HeatFrame>& frames, const std::string& title);

// Regions that touch each other make one stretch.
std::vector<TrackedRange> stretches_of(std::span<const HeatRegion> regions);
float hottest_of(std::span<const HeatRegion> regions);

}  // namespace tierpilot::tiertool
