#include "coordinator/core/outcomes/task_writes.h"

#include <memory>
#include <utility>

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

void TaskWrites::note_adopted(const Task& task) {
  note(task.id);
  adopted_[task.id] = task.attempt;
}

void TaskWrites::write_noted() {
  if (!writing_noted_) write_next_noted();
}

void TaskWrites::write_next_noted() {
  writing_noted_ = !noted_.empty();
  if (!writing_noted_) return;
  write({noted_.begin(), noted_.end()}, {}, [this](const Status& status) {
    writing_noted_ = false;
    if (status) write_noted();  // else retry() does
  });
}

void TaskWrites::flush_noted() {
  if (!noted_.empty()) write({noted_.begin(), noted_.end()}, {}, nullptr);
}

void TaskWrites::write(std::vector<uint64_t> changed, std::vector<Dataset> datasets,
                       Durable durable) {
  auto copies = std::make_shared<std::vector<Task>>();
  const auto published = std::make_shared<const std::vector<Dataset>>(std::move(datasets));
  std::vector<uint64_t> noted;
  for (const uint64_t id : changed) {
    const auto& task = *state_.tasks.find(id);
    copies->push_back(task);
    if (noted_.erase(id) > 0) noted.push_back(id);
    if (is_over(task)) unwritten_.add(task);
  }
  state_.store.write(
      [copies, published, reads = reads_of(*copies)](Db& db) -> Status {
        for (const auto& task : *copies)
          if (auto put = records::update_task(db, task); !put) return put;
        for (const auto& [dataset, count] : reads)
          if (auto put = records::put_reads(db, dataset, count); !put) return put;
        for (const auto& dataset : *published)
          if (auto put = records::put_dataset(db, dataset); !put) return put;
        return {};
      },
      [this, copies, published, noted = std::move(noted),
       durable = std::move(durable)](Status status) {
        if (status)
          publication_.durable(*published);
        else
          publication_.not_durable(*published);
        for (const auto& task : *copies)
          if (status)
            written(task);
          else if (is_ended(task.state) && unwritten_.has(task.id))
            state_.refused_ends.insert(task.id);
        for (const uint64_t id : noted)
          if (!status) note_again(id);
        if (durable) durable(std::move(status));
      });
}

// Those that have succeeded count as reads of their datasets.
std::map<std::string, uint64_t> TaskWrites::reads_of(const std::vector<Task>& tasks) const {
  std::map<std::string, uint64_t> reads;
  for (const auto& task : tasks) {
    if (task.state != TaskState::kSucceeded) continue;
    for (const auto& use : task.spec.datasets)
      if (const auto* entry = state_.catalog.find(use.dataset))
        reads[use.dataset] = entry->dataset.reads;
  }
  return reads;
}

void TaskWrites::note_again(uint64_t id) {
  const auto* task = state_.tasks.find(id);
  if (task && !is_ended(task->state) && !unwritten_.has(id)) note(id);
}

void TaskWrites::write_ends(Durable durable) {
  end_waits_.push_back(std::move(durable));
  if (!writing_ends_) write_next_ends();
}

void TaskWrites::write_next_ends() {
  auto tasks = unwritten_.tasks();
  // Placed anew, a gang without its ranks would be one that has none left.
  std::erase_if(tasks, [this](uint64_t id) {
    const auto& task = *state_.tasks.find(id);
    return task.spec.is_gang() && !is_over(task);
  });
  writing_ends_ = !tasks.empty() || !end_waits_.empty();
  if (!writing_ends_) return;
  auto datasets = published_by(tasks);
  write(std::move(tasks), std::move(datasets),
        [this, waits = std::exchange(end_waits_, {})](const Status& status) {
          writing_ends_ = false;
          for (const auto& wait : waits)
            if (wait) wait(status);
          if (!end_waits_.empty() && !writing_ends_) write_next_ends();
        });
}

std::vector<Dataset> TaskWrites::published_by(const std::vector<uint64_t>& tasks) const {
  std::set<std::string> names;
  for (const uint64_t id : tasks)
    if (const auto& task = *state_.tasks.find(id); task.exit)
      for (const auto& written : task.exit->written) names.insert(written.dataset);
  std::vector<Dataset> datasets;
  for (const auto& name : names)
    if (const auto* entry = state_.catalog.find(name)) datasets.push_back(entry->dataset);
  return datasets;
}

void TaskWrites::written(const Task& task) {
  if (const auto adopted = adopted_.find(task.id);
      adopted != adopted_.end() && adopted->second <= task.attempt)
    adopted_.erase(adopted);
  const auto held = unwritten_.written(task);
  if (!held) return;
  // The task may have been placed anew meanwhile: that attempt goes on.
  for (const auto& [node, attempt] : *held) release(node, attempt);
  if (!is_ended(task.state)) return;
  state_.refused_ends.erase(task.id);
  if (!task.rank) state_.scores.ended(task);  // a gang is one task
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
  write_noted();
  if (!writing_ends_) write_next_ends();
}

}  // namespace tierpilot
