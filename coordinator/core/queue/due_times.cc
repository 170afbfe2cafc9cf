#include "coordinator/core/queue/due_times.h"

#include <cstdlib>

#include "base/log.h"
#include "coordinator/core/outcomes/lifecycle.h"

namespace tierpilot {
namespace {

constexpr int64_t kLeast_ms = 1000;

// Less than 0: back.
int64_t set_by_ms(const ClockOffset& before, const ClockOffset& now) {
  return std::abs(now.ms - before.ms) < kLeast_ms ? 0 : now.ms - before.ms;
}

void move_times(Task& task, int64_t by_ms) {
  task.submitted_ms += by_ms;
  if (task.started_ms > 0) task.started_ms += by_ms;
}

}  // namespace

DueTimes::DueTimes(ClusterState& state, Lifecycle& lifecycle)
    : state_(state), lifecycle_(lifecycle), last_(offset_of(state.clock)) {
  state_.heed_clock = [this] { heed(); };
  state_.heed_clock_of = [this](const auto& tasks) { heed(tasks); };
}

DueTimes::~DueTimes() {
  state_.heed_clock = [] {};
  state_.heed_clock_of = [](const auto&) {};
}

void DueTimes::begin() {
  const auto now = offset_of(state_.clock);
  std::vector<uint64_t> due;
  for (const auto& [id, each] : state_.tasks.all())
    if (each.spec.is_due()) due.push_back(id);
  for (const uint64_t id : due) {
    auto& by = state_.tasks.find(id)->times_by;
    if (by && by->boot_id == now.boot_id && now.boot_id != 0) continue;
    by = now;
    lifecycle_.writes().note(id);
  }
  heed(due);
}

void DueTimes::heed() {
  const auto now = offset_of(state_.clock);
  const bool was_set = set_by_ms(last_, now) != 0;
  last_ = now;
  if (!was_set) return;
  std::vector<uint64_t> due;
  for (const auto& [id, task] : state_.tasks.all())
    if (task.times_by && !is_ended(task.state)) due.push_back(id);
  heed(due);
}

void DueTimes::heed(const std::vector<uint64_t>& tasks) {
  const auto now = offset_of(state_.clock);
  size_t moved = 0;
  int64_t most_ms = 0;
  for (const uint64_t id : tasks) {
    auto& task = *state_.tasks.find(id);
    const int64_t by_ms = set_by_ms(*task.times_by, now);
    if (by_ms == 0) continue;
    move_times(task, by_ms);
    task.times_by = now;
    lifecycle_.writes().note(id);
    ++moved;
    most_ms = by_ms;
  }
  if (moved > 0)
    spdlog::warn(
        "the clock was set by {} s: promises and deadlines of {} tasks are due as long from now as "
        "before",
        most_ms / 1000, moved);
  lifecycle_.writes().write_noted();
}

}  // namespace tierpilot
