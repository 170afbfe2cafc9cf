#include "coordinator/core/sharing/promise_words.h"

#include <fmt/format.h>

#include "coordinator/core/sharing/share_waits.h"

namespace tierpilot {
namespace {

// Of a promise that was made.
std::string at_its_end(const Task& task) {
  const double took_s = static_cast<double>(task.finished_ms - task.submitted_ms) / 1e3;
  const double promise_s = static_cast<double>(task.spec.share.promise_ms) / 1e3;
  const double left_s = promise_s - took_s;
  if (task.state == TaskState::kCancelled && left_s < 0)
    return fmt::format("broken: the task was cancelled after {:.1f} s of {}", took_s, promise_s);
  if (task.state == TaskState::kCancelled)
    return fmt::format("void: the task was cancelled after {:.1f} s of {}", took_s, promise_s);
  if (task.state == TaskState::kFailed)
    return fmt::format("broken: the task failed after {:.1f} s of {}", took_s, promise_s);
  return left_s >= 0 ? fmt::format("kept: done after {:.1f} s of {}, {:.1f} s early", took_s,
                                   promise_s, left_s)
                     : fmt::format("broken: done after {:.1f} s of {}, {:.1f} s late", took_s,
                                   promise_s, -left_s);
}

}  // namespace

std::string promise_words(const Task& task, int64_t now_ms) {
  if (task.spec.share.promise_ms == 0) return {};
  constexpr const char* kWaited = "not made: its time was over before the task began";
  const bool has_ended = is_ended(task.state);
  if (is_on_trial(task)) {
    if (!has_ended) return "on trial";
    return waited_too_long(task, now_ms) ? kWaited
                                         : "not made: the task ended before it was decided";
  }
  if (task.share && task.share->trial_end == TrialEnd::kNotMade)
    return task.share->milli == 0 ? kWaited : "not made: it takes too long for it";
  if (has_ended) return at_its_end(task);
  const std::string made = task.spec.share.promise_on_trial ? "made on trial" : "made";
  const auto late_ms = now_ms - task.submitted_ms - task.spec.share.promise_ms;
  return late_ms > 0 ? fmt::format("{}; late: its time was over {} s ago", made, late_ms / 1000)
                     : made;
}

}  // namespace tierpilot
