// Many points to as many as a screen can show.
#pragma once

#include <vector>

#include "policies/sim/plot/chart.h"

namespace tierpilot::sim::plot {

// Of the points (in pixels, by rising x) of each pixel column the first, the lowest, the highest
// and the last, in their order: the line through these looks like the line through all (Jugel et
// al.: M4, PVLDB 7(10), 2014). A column with nothing but NaN becomes one NaN, a gap of the line.
std::vector<Point> thin_line(const std::vector<Point>& points);

// Of each pixel column the outermost ends of the band.
std::vector<BandPoint> thin_band(const std::vector<BandPoint>& band);

}  // namespace tierpilot::sim::plot
