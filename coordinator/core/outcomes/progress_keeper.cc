#include "coordinator/core/outcomes/progress_keeper.h"

#include <spdlog/spdlog.h>

#include "coordinator/store/records.h"

namespace tierpilot {

Status ProgressKeeper::begin(const std::function<void(const Task&, const JobPoint&)>& known) {
  auto kept = records::active_job_progress(state_.store.reader());
  if (!kept) return tl::unexpected(kept.error());
  for (const auto& [id, text] : *kept) {
    const auto* task = state_.tasks.find(id);
    auto points = parse_job_points(text);
    if (!points) spdlog::warn("task {}: {}", id, points.error().message);
    if (!task || !points) continue;
    for (auto& point : *points) {
      known(*task, point);
      book_.add(id, std::move(point));
    }
  }
  return {};
}

void ProgressKeeper::add(uint64_t task, JobPoint point) {
  if (!book_.has(task)) recall(task);
  book_.add(task, std::move(point));
  due_ns_.try_emplace(task, state_.clock.boot_ns() + kEvery_ns);
}

// What the book had no room for any more would else be written over by what follows.
void ProgressKeeper::recall(uint64_t task) {
  auto points = records::job_progress(state_.store.reader(), task);
  if (!points) return;
  for (auto& point : *points) book_.add(task, std::move(point));
}

void ProgressKeeper::ended(uint64_t task) {
  if (const auto due = due_ns_.find(task); due != due_ns_.end())
    due->second = 0;
  else
    book_.forget(task);
}

std::vector<JobPoint> ProgressKeeper::of(uint64_t task) const {
  if (book_.has(task)) return book_.of(task);
  return records::job_progress(state_.store.reader(), task).value_or(std::vector<JobPoint>());
}

void ProgressKeeper::write(uint64_t task) {
  if (!book_.has(task)) return;
  state_.store.write([task, text = job_points_text(book_.of(task))](
                         Db& db) { return records::put_job_progress(db, task, text); },
                     [this, task](const Status& status) { written(task, status); });
}

void ProgressKeeper::written(uint64_t task, const Status& status) {
  if (!status) {
    spdlog::warn("task {}: its progress: {}", task, status.error().message);
    due_ns_.try_emplace(task, state_.clock.boot_ns() + kEvery_ns);
  } else if (!state_.tasks.find(task) && !due_ns_.contains(task)) {
    book_.forget(task);  // whoever asks for it reads it from the store
  }
}

void ProgressKeeper::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  size_t count = 0;
  for (auto due = due_ns_.begin(); due != due_ns_.end() && count < kMostWrites;) {
    if (due->second > now_ns) {
      ++due;
      continue;
    }
    write(due->first);
    ++count;
    due = due_ns_.erase(due);
  }
}

void ProgressKeeper::flush() {
  for (const auto& [task, due] : due_ns_) write(task);
  due_ns_.clear();
}

}  // namespace tierpilot
