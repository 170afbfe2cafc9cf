#include "coordinator/core/outcomes/progress_book.h"

namespace tierpilot {

void ProgressBook::add(uint64_t task, JobPoint point) {
  const auto [series, is_new] = series_.try_emplace(task, each_);
  if (is_new) by_age_.push_back(task);
  series->second.bound(each_);
  series->second.add(std::move(point));
  if (is_new) bound();
}

void ProgressBook::bound() {
  if (series_.size() * each_ <= kMostOfAll) return;
  if (each_ == kFewestPoints) {
    series_.erase(by_age_.front());
    by_age_.pop_front();
    return;
  }
  each_ /= 2;
  for (auto& [task, series] : series_) series.bound(each_);
}

void ProgressBook::forget(uint64_t task) {
  if (series_.erase(task) > 0) std::erase(by_age_, task);
  // Half of the room is free: not again at the next one.
  if (each_ < kMostPoints && series_.size() * each_ * 4 <= kMostOfAll) each_ *= 2;
}

const std::vector<JobPoint>& ProgressBook::of(uint64_t task) const {
  static const std::vector<JobPoint> kNone;
  const auto found = series_.find(task);
  return found == series_.end() ? kNone : found->second.points();
}

}  // namespace tierpilot
