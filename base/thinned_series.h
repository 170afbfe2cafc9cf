// A series that grows without end in bounded room: every second point goes when it is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tierpilot {

template <class Point>
class ThinnedSeries {
 public:
  explicit ThinnedSeries(size_t most) : most_(most) {}

  void add(Point point) {
    // The newest stands in for those that are left out until the next one that stays.
    const bool stays = added_++ % every_ == 0;
    if (!stays && points_.size() > 1) points_.pop_back();
    points_.push_back(std::move(point));
    bound(most_);
  }
  // At most so many points from now on, two at least.
  void bound(size_t most) {
    most_ = most;
    while (points_.size() > most_) halve();
  }
  // Oldest first; the newest is always in it.
  const std::vector<Point>& points() const { return points_; }

 private:
  void halve() {
    const size_t newest = points_.size() - 1;
    size_t kept = 0;
    for (size_t i = 0; i <= newest; i += 2) {
      if (kept != i) points_[kept] = std::move(points_[i]);
      ++kept;
    }
    if (newest % 2 == 1) points_[kept++] = std::move(points_[newest]);
    points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(kept), points_.end());
    every_ *= 2;
  }

  size_t most_;
  std::vector<Point> points_;
  uint64_t every_ = 1;  // of those added, so many make a point
  uint64_t added_ = 0;
};

}  // namespace tierpilot
