#include "coordinator/service/submission_audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/audit.h"

namespace tierpilot {
namespace {

constexpr int64_t kIntervalNs = 1'000'000'000;

}  // namespace

void SubmissionAudit::accepted(const std::string& who, const SubmitReceipt& receipt) {
  auto& accepted = by_whom_[who];
  ++accepted.submissions;
  accepted.tasks += receipt.task_count;
  accepted.first_task = std::min(accepted.first_task, receipt.first_task);
  accepted.last_task = std::max(accepted.last_task, receipt.first_task + receipt.task_count - 1);
}

void SubmissionAudit::tick(int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kIntervalNs;
  flush();
}

void SubmissionAudit::flush() {
  for (const auto& [who, of] : by_whom_) {
    const auto what = of.tasks == 1 ? fmt::format("task {}", of.first_task)
                      : of.submissions == 1
                          ? fmt::format("tasks {} to {}", of.first_task, of.last_task)
                          : fmt::format("{} tasks between {} and {}, in {} submissions", of.tasks,
                                        of.first_task, of.last_task, of.submissions);
    audit(fmt::format("{}: submit {}", who, what));
  }
  by_whom_.clear();
}

}  // namespace tierpilot
