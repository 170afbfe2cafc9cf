#include "tools/tierctl/task_wait.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "tools/cluster/duration.h"
#include "tools/tierctl/task_view.h"

namespace tierpilot::tierctl {
namespace {

// One call waits this long at most, so that a lost coordinator is noticed.
constexpr int64_t kSliceMs = 20'000;

// Tasks of one call: an answer holds them whole, and must fit a frame.
constexpr size_t kTasksPerCall = 64;

struct Progress {
  nlohmann::ordered_json ended = nlohmann::ordered_json::array();
  bool all_succeeded = true;
};

// Waits for the first of those from `begin` on and takes those that have ended out of `ids`.
Status wait_once(ClusterConnection& connection, std::vector<uint64_t>& ids, size_t begin,
                 int64_t slice_ms, Progress& progress) {
  auto request = connection.cluster().taskWaitRequest();
  request.setIds(kj::ArrayPtr<const uint64_t>(ids.data() + begin,
                                              std::min(ids.size() - begin, kTasksPerCall)));
  request.setTimeoutMs(static_cast<uint32_t>(slice_ms));
  auto answer = connection.call(kj::mv(request), slice_ms);
  if (!answer) return tl::unexpected(answer.error());
  for (const auto task : answer->getTasks()) {
    if (!has_ended(task)) continue;
    progress.ended.push_back(task_json(task));
    progress.all_succeeded = progress.all_succeeded && task.getState() == "succeeded";
    std::erase(ids, task.getId());
  }
  return {};
}

// Takes all out that have ended by now.
Status look_at_all(ClusterConnection& connection, std::vector<uint64_t>& ids, Progress& progress) {
  for (size_t begin = 0; begin < ids.size();) {
    const size_t before = ids.size(), last = std::min(before, begin + kTasksPerCall);
    if (auto status = wait_once(connection, ids, begin, 0, progress); !status) return status;
    begin = last - (before - ids.size());
  }
  return {};
}

int print_tasks(Context& context, Progress& progress) {
  if (!context.output.json) add_ages(progress.ended, system_clock().wall_ms());
  const int code = print(context.output, {{"tasks", std::move(progress.ended)}},
                         {{.rows = "/tasks", .columns = task_columns()}});
  return code == kExitOk && !progress.all_succeeded ? kExitFailed : code;
}

}  // namespace

Result<int> wait_for_tasks(Context& context, ClusterConnection& connection,
                           std::vector<uint64_t> ids, int64_t timeout_ms) {
  const size_t asked = ids.size();
  const int64_t start_ns = system_clock().boot_ns();
  Progress progress;
  while (true) {
    if (auto status = look_at_all(connection, ids, progress); !status)
      return tl::unexpected(status.error());
    if (ids.empty()) break;
    const int64_t waited_ms = (system_clock().boot_ns() - start_ns) / 1'000'000;
    const int64_t left_ms = timeout_ms < 0 ? kSliceMs : timeout_ms - waited_ms;
    if (left_ms <= 0)
      return fail(ErrorCode::kTimeout,
                  fmt::format("{} of {} tasks had not ended after {}; they go on", ids.size(),
                              asked, format_duration_ns(static_cast<double>(timeout_ms) * 1e6)));
    auto status = wait_once(connection, ids, 0, std::min(left_ms, kSliceMs), progress);
    if (!status) return tl::unexpected(status.error());
  }
  return print_tasks(context, progress);
}

}  // namespace tierpilot::tierctl
