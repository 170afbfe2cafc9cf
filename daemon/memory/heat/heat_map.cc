#include "daemon/memory/heat/heat_map.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tierpilot {
namespace {

// Regions are built in a second buffer while the first is read.
constexpr size_t kBytesPerRegion = 2 * sizeof(HeatRegion);
// Below this share of the hottest region's heat, differences do not matter.
constexpr double kNegligible = 0.005;

uint64_t floor_to(uint64_t address, uint64_t page) {
  return address & ~(page - 1);
}
uint64_t ceil_to(uint64_t address, uint64_t page) {
  return address > UINT64_MAX - page ? floor_to(UINT64_MAX, page)
                                     : floor_to(address + page - 1, page);
}

struct Piece {
  uint64_t end;
  float rate;
};

// Walks over samples along with growing addresses.
class SampleCursor {
 public:
  explicit SampleCursor(std::span<const AccessSample> samples) : left_(samples) {}

  // The longest stretch from `at`, a page's start, to `limit` at most, that has one rate.
  Piece next(uint64_t at, uint64_t limit, uint64_t page) {
    while (!left_.empty() && left_.front().end <= at) left_ = left_.subspan(1);
    if (left_.empty() || floor_to(left_.front().start, page) >= limit) return {limit, 0};
    const AccessSample& sample = left_.front();
    const uint64_t first = floor_to(sample.start, page);
    if (first > at) return {first, 0};
    const uint64_t whole = floor_to(sample.end, page);
    if (sample.start <= at && whole >= at + page)
      return {std::min(whole, limit), sample.accesses_per_page_s};
    return {at + page, highest_in(at, at + page)};
  }

 private:
  float highest_in(uint64_t start, uint64_t end) const {
    float rate = 0;
    for (const auto& sample : left_) {
      if (sample.start >= end) break;
      if (sample.end > start) rate = std::max(rate, sample.accesses_per_page_s);
    }
    return rate;
  }

  std::span<const AccessSample> left_;
};

}  // namespace

size_t HeatMap::memory_bytes() const {
  return (regions_.capacity() + next_.capacity()) * sizeof(HeatRegion);
}

// The largest ranges, as many as a share of their sum pays two regions each for.
void HeatMap::choose_ranges(std::span<const TrackedRange> ranges,
                            std::vector<TrackedRange>& chosen) {
  chosen.assign(ranges.begin(), ranges.end());
  std::erase_if(chosen, [](const auto& range) { return range.end <= range.start; });
  std::sort(chosen.begin(), chosen.end(),
            [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
  const auto affordable = [this](uint64_t bytes) {
    const double regions = static_cast<double>(bytes) * options_.memory_share / kBytesPerRegion;
    return std::min(static_cast<size_t>(regions), options_.max_regions);
  };
  uint64_t sum = 0;
  size_t kept = 0;
  while (kept < chosen.size() && 2 * (kept + 1) <= affordable(sum + chosen[kept].bytes()))
    sum += chosen[kept++].bytes();
  chosen.resize(kept);
  tracked_bytes_ = sum;
  region_limit_ = affordable(sum);
  std::sort(chosen.begin(), chosen.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
}

void HeatMap::track(std::span<const TrackedRange> ranges) {
  std::vector<TrackedRange> chosen;
  choose_ranges(ranges, chosen);
  // Exactly as large as allowed: a growing vector would double.
  std::vector<HeatRegion>().swap(next_);
  next_.reserve(region_limit_);
  auto old = regions_.begin();
  for (const auto& range : chosen) {
    const auto bits = static_cast<uint8_t>(std::countr_zero(range.page_bytes));
    uint64_t at = range.start;
    while (old != regions_.end() && old->end <= at) ++old;
    for (auto known = old; at < range.end; ++known) {
      const bool more = known != regions_.end() && known->start < range.end;
      const uint64_t page = range.page_bytes;
      const uint64_t from =
          more ? std::clamp(floor_to(known->start, page), at, range.end) : range.end;
      if (from > at) emit({at, from, 0, 0, bits});
      if (!more) break;
      at = std::max(from, std::min(range.end, ceil_to(known->end, page)));
      if (at > from) emit({from, at, known->heat, known->updates, bits});
    }
  }
  regions_.swap(next_);
  if (next_.capacity() != region_limit_) {
    std::vector<HeatRegion>().swap(next_);
    next_.reserve(region_limit_);
  }
}

void HeatMap::update(std::span<const AccessSample> samples, double interval_s) {
  const float keep = static_cast<float>(std::exp2(-interval_s / options_.half_life_s));
  SampleCursor cursor(samples);
  next_.clear();
  float hottest = 0;
  for (const auto& region : regions_) {
    for (uint64_t at = region.start; at < region.end;) {
      const auto [end, rate] = cursor.next(at, region.end, region.page_bytes());
      // What is known of nothing begins at what was seen.
      const float heat = region.updates == 0 ? rate : region.heat * keep + rate * (1 - keep);
      const auto updates = static_cast<uint16_t>(std::min(region.updates + 1, UINT16_MAX));
      emit({at, end, heat, updates, region.page_bits});
      hottest = std::max(hottest, heat);
      at = end;
    }
  }
  hottest_ = hottest;
  regions_.swap(next_);
}

bool HeatMap::mergeable(const HeatRegion& a, const HeatRegion& b, double tolerance) const {
  if (a.end != b.start || a.page_bits != b.page_bits) return false;
  if (tolerance >= 1) return true;
  if ((a.updates == 0) != (b.updates == 0)) return false;
  const double difference = std::abs(a.heat - b.heat);
  return difference <= tolerance * std::max(a.heat, b.heat) || difference <= kNegligible * hottest_;
}

bool HeatMap::absorb(HeatRegion& left, const HeatRegion& right, double tolerance) const {
  if (!mergeable(left, right, tolerance)) return false;
  const auto a = static_cast<float>(left.bytes()), b = static_cast<float>(right.bytes());
  left.heat = (left.heat * a + right.heat * b) / (a + b);
  left.end = right.end;
  left.updates = std::min(left.updates, right.updates);
  return true;
}

void HeatMap::emit(const HeatRegion& piece) {
  if (!next_.empty() && absorb(next_.back(), piece, options_.merge_tolerance)) return;
  if (next_.size() == region_limit_) compact();
  next_.push_back(piece);
}

// Gives up the least differences until a quarter is free. At a tolerance of 1 whole ranges are
// left, and choose_ranges() made sure that these fill half at most.
void HeatMap::compact() {
  for (double tolerance = options_.merge_tolerance; next_.size() > region_limit_ * 3 / 4;) {
    tolerance = std::min(std::max(tolerance, 0.01) * 1.5, 1.0);
    size_t last = 0;
    for (size_t i = 1; i < next_.size(); ++i)
      if (!absorb(next_[last], next_[i], tolerance)) next_[++last] = next_[i];
    next_.resize(last + 1);
  }
}

}  // namespace tierpilot
