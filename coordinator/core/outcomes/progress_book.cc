#include "coordinator/core/outcomes/progress_book.h"

namespace tierpilot {

void ProgressBook::add(uint64_t task, JobPoint point) {
  const auto [series, is_new] = series_.try_emplace(task, kMostPoints);
  if (is_new) by_age_.push_back(task);
  series->second.add(std::move(point));
  if (series_.size() <= kMostTasks) return;
  series_.erase(by_age_.front());
  by_age_.pop_front();
}

void ProgressBook::forget(uint64_t task) {
  if (series_.erase(task) > 0) std::erase(by_age_, task);
}

const std::vector<JobPoint>& ProgressBook::of(uint64_t task) const {
  static const std::vector<JobPoint> kNone;
  const auto found = series_.find(task);
  return found == series_.end() ? kNone : found->second.points();
}

}  // namespace tierpilot
