// How hot the memory of one process is: regions of much the same heat, as in DAMON (SeongJae Park
// et al., "Profiling Dynamic Data Access Patterns with Controlled Overhead and Quality",
// Middleware '19 Industry), but split where samples differ rather than at random.
//
// Heat is an exponentially weighted mean of accesses per page and second. Pure: no system call, no
// clock. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/memory/heat/access.h"

namespace tierpilot {

struct HeatRegion {
  uint64_t start = 0;
  uint64_t end = 0;
  float heat = 0;         // accesses per page and second
  uint16_t updates = 0;   // since the region is tracked, at most 65,535; 0: nothing is known
  uint8_t page_bits = 0;  // log2 of the page size: edges are multiples of it

  uint64_t bytes() const { return end - start; }
  uint64_t page_bytes() const { return uint64_t{1} << page_bits; }
};
static_assert(sizeof(HeatRegion) == 24);

struct HeatOptions {
  double half_life_s = 1.5;     // after it an observation weighs half
  double memory_share = 0.003;  // of the tracked bytes, for everything the map allocates
  size_t max_regions = 65'536;
  // Neighbours merge when their heats differ by less than this share of the hotter one.
  double merge_tolerance = 0.1;
};

class HeatMap {
 public:
  explicit HeatMap(HeatOptions options = {}) : options_(options) {}

  // Sets what is tracked: sorted, disjoint ranges. Known heat stays where a range remains; new
  // ranges begin cold and unknown. When memory_share cannot pay for a region per range, the
  // smallest ranges are left out.
  void track(std::span<const TrackedRange> ranges);

  // Ages all regions by `interval_s` and takes in what was seen meanwhile: sorted, disjoint
  // samples. Samples are widened to whole pages; within a page the highest counts.
  void update(std::span<const AccessSample> samples, double interval_s);

  // Sorted and disjoint. Valid until the next call of track() or update().
  std::span<const HeatRegion> regions() const { return regions_; }
  uint64_t tracked_bytes() const { return tracked_bytes_; }
  // Of everything allocated: at most memory_share of tracked_bytes().
  size_t memory_bytes() const;
  double half_life_s() const { return options_.half_life_s; }

 private:
  void choose_ranges(std::span<const TrackedRange> ranges, std::vector<TrackedRange>& chosen);
  void emit(const HeatRegion& piece);
  void compact();
  bool absorb(HeatRegion& left, const HeatRegion& right, double tolerance) const;
  bool mergeable(const HeatRegion& a, const HeatRegion& b, double tolerance) const;

  HeatOptions options_;
  std::vector<HeatRegion> regions_;
  std::vector<HeatRegion> next_;  // under construction
  uint64_t tracked_bytes_ = 0;
  size_t region_limit_ = 0;
  float hottest_ = 0;
};

}  // namespace tierpilot
