#include "coordinator/core/outcomes/task_writes.h"

#include <memory>

#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

// Its last attempt is over; a rank waits for what its gang makes of it.
bool is_over(const Task& task) {
  const bool waits =
      task.state == TaskState::kQueued || (task.rank && task.state == TaskState::kWaiting);
  return is_ended(task.state) || (waits && task.attempt > 0);
}

}  // namespace

void TaskWrites::write_starts() {
  if (!writing_starts_) write_next_starts();
}

void TaskWrites::write_next_starts() {
  writing_starts_ = !starts_.empty();
  if (writing_starts_)
    write({starts_.begin(), starts_.end()}, {}, [this](Status) { write_next_starts(); });
}

void TaskWrites::flush_starts() {
  if (!starts_.empty()) write({starts_.begin(), starts_.end()}, {}, [](Status) {});
}

void TaskWrites::write(std::vector<uint64_t> changed, std::vector<Dataset> datasets,
                       Durable durable) {
  auto copies = std::make_shared<std::vector<Task>>();
  const auto published = std::make_shared<const std::vector<Dataset>>(std::move(datasets));
  for (const uint64_t id : changed) {
    const auto& task = *state_.tasks.find(id);
    copies->push_back(task);
    starts_.erase(id);
    if (is_over(task)) unwritten_.add(task);
  }
  state_.store.write(
      [copies, published](Db& db) -> Status {
        for (const auto& task : *copies)
          if (auto put = records::update_task(db, task); !put) return put;
        for (const auto& dataset : *published)
          if (auto put = records::put_dataset(db, dataset); !put) return put;
        return {};
      },
      [this, copies, published, durable = std::move(durable)](Status status) {
        if (status) publication_.durable(*published);
        for (const auto& task : *copies)
          if (status) written(task);
        if (durable) durable(std::move(status));
      });
}

void TaskWrites::write_end(const Task& task, Durable durable) {
  std::vector<Dataset> datasets;  // the first write may have failed
  if (task.exit)
    for (const auto& written : task.exit->written)
      if (const auto* entry = state_.catalog.find(written.dataset))
        datasets.push_back(entry->dataset);
  write({task.id}, std::move(datasets), std::move(durable));
}

void TaskWrites::written(const Task& task) {
  const auto held = unwritten_.written(task);
  if (!held) return;
  // The task may have been placed anew meanwhile: that attempt goes on.
  for (const auto& [node, attempt] : *held) release(node, attempt);
  if (!is_ended(task.state)) return;
  state_.scores.ended(task);
  state_.catalog.remove_user(task);
  state_.load.remove(task.user, {1, task_bytes(task.spec)});
  state_.tasks.remove(task.id);
  ended_(task.id);
}

void TaskWrites::release(const std::string& name, AttemptId attempt) {
  const auto* node = state_.registry.find(name);
  if (node && node->link && attempt.attempt > 0) node->link->release(attempt);
}

void TaskWrites::retry() {
  auto tasks = unwritten_.tasks();
  if (tasks.empty()) return;
  std::vector<Dataset> datasets;
  for (const auto& [name, entry] : state_.catalog.all()) datasets.push_back(entry.dataset);
  write(std::move(tasks), std::move(datasets), nullptr);
}

}  // namespace tierpilot
