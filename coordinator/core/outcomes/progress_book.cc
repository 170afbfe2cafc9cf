#include "coordinator/core/outcomes/progress_book.h"

namespace tierpilot {

void ProgressBook::add(uint64_t task, JobPoint point) {
  const auto [found, is_new] = series_.try_emplace(task);
  auto& series = found->second;
  if (is_new) by_age_.push_back(task);
  // The newest stands in for those that are left out until the next one that stays.
  const bool stays = series.reports++ % series.every == 0;
  if (!stays && series.points.size() > 1) series.points.pop_back();
  series.points.push_back(std::move(point));
  if (series.points.size() > kMostPoints) {
    size_t kept = 0;
    for (size_t i = 0; i < series.points.size(); i += 2)
      series.points[kept++] = std::move(series.points[i]);
    series.points.resize(kept);
    series.every *= 2;
  }
  if (series_.size() <= kMostTasks) return;
  series_.erase(by_age_.front());
  by_age_.pop_front();
}

const std::vector<JobPoint>& ProgressBook::of(uint64_t task) const {
  static const std::vector<JobPoint> kNone;
  const auto found = series_.find(task);
  return found == series_.end() ? kNone : found->second.points;
}

}  // namespace tierpilot
