#include "tools/tierload/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "tools/cluster/pages.h"

namespace tierpilot::tierload {
namespace {

constexpr uint32_t kTickMs = 200;
constexpr size_t kTasksPerCall = 64;

int64_t now_ms() {
  return system_clock().boot_ns() / 1'000'000;
}

void fill(wire::TaskSpec::Builder spec, const TaskPlan& task, const std::string& program) {
  const auto command = task_command(task, program);
  auto argv = spec.initArgv(static_cast<uint32_t>(command.size()));
  for (uint32_t i = 0; i < argv.size(); ++i) argv.set(i, command[i]);
  auto uses = spec.initDatasets(static_cast<uint32_t>(task.datasets.size()));
  for (uint32_t i = 0; i < uses.size(); ++i) {
    uses[i].setDataset(task.datasets[i].dataset);
    uses[i].setWrite(task.datasets[i].write);
  }
  spec.setName(task.name);
  spec.setUnits(task.units);
  spec.setMemoryBytes(task.memory_bytes);
  spec.setFloatOperations(task.operations.floats);
  spec.setIntOperations(task.operations.ints);
}

TaskFacts facts_of(wire::Task::Reader task) {
  constexpr double kNsPerMs = 1e6;
  const auto served = task.getServed();
  const auto exit = task.getExit();
  return {.id = task.getId(),
          .name = task.getName(),
          .node = task.getNode(),
          .succeeded = task.getState() == "succeeded",
          .reason = task.getReason(),
          .submitted_ms = task.getSubmittedMs(),
          .started_ms = task.getStartedMs(),
          .finished_ms = task.getFinishedMs(),
          .data_ms = static_cast<double>(served.getLatencyNs()) / kNsPerMs,
          .run_ms = static_cast<double>(exit.getWallNs()) / kNsPerMs,
          .cpu_ms = static_cast<double>(exit.getCpuUserNs() + exit.getCpuSystemNs()) / kNsPerMs,
          .local_bytes = served.getLocalBytes(),
          .promoted_bytes = served.getPromotedBytes(),
          .fetched_bytes = served.getFetchedBytes(),
          .evicted_bytes = served.getEvictedBytes()};
}

// All submits of one replay. Lives while they are in flight.
class Submitter {
 public:
  Submitter(ClusterConnection& connection, const Workload& workload, const std::string& program)
      : connection_(connection), program_(program), start_ms_(now_ms()) {
    for (const auto& task : workload.tasks)
      submits_.push_back(connection_.loop()
                             .after_ms(task.arrival_ms)
                             .then([this, &task] { return submit(task); })
                             .eagerlyEvaluate([this](kj::Exception&& exception) {
                               failed_ = to_error(exception);
                             }));
  }

  // Of the tasks that have been taken.
  const std::vector<uint64_t>& ids() const { return ids_; }
  bool all_taken() const { return ids_.size() == submits_.size(); }
  const std::optional<Error>& failed() const { return failed_; }
  int64_t latest_ms() const { return latest_ms_; }

 private:
  kj::Promise<void> submit(const TaskPlan& task) {
    latest_ms_ = std::max(latest_ms_, now_ms() - start_ms_ - task.arrival_ms);
    auto request = connection_.cluster().submitRequest();
    request.setRequestId(draw_request_id());
    fill(request.initTasks(1)[0], task, program_);
    return request.send().then([this](auto&& answer) { ids_.push_back(answer.getTasks()[0]); });
  }

  ClusterConnection& connection_;
  const std::string& program_;
  const int64_t start_ms_;
  int64_t latest_ms_ = 0;
  std::vector<uint64_t> ids_;
  std::optional<Error> failed_;
  std::vector<kj::Promise<void>> submits_;
};

Status wait_until_taken(ClusterConnection& connection, const Submitter& submitter,
                        const std::function<Status(const ReplayProgress&)>& tick) {
  while (!submitter.all_taken()) {
    if (const auto& error = submitter.failed())
      return fail(error->code, "a task could not be submitted: " + error->message);
    if (auto slept = connection.wait(connection.loop().after_ms(kTickMs)); !slept) return slept;
    if (auto status = tick({submitter.ids().size(), 0}); !status) return status;
  }
  return {};
}

// One call's worth of waiting; ended tasks move from `open` to `ended`.
Status collect(ClusterConnection& connection, std::vector<uint64_t>& open,
               std::vector<TaskFacts>& ended) {
  auto request = connection.cluster().taskWaitRequest();
  request.setIds(kj::ArrayPtr<const uint64_t>(open.data(), std::min(open.size(), kTasksPerCall)));
  request.setTimeoutMs(kTickMs);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  for (const auto task : answer->getTasks()) {
    if (task.getFinishedMs() == 0) continue;
    ended.push_back(facts_of(task));
    std::erase(open, task.getId());
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> nodes_up(ClusterConnection& connection) {
  std::vector<std::string> names;
  auto listed = for_each_node(connection, [&](wire::NodeEntry::Reader node) {
    if (node.getState() == "up") names.emplace_back(node.getInfo().getName());
  });
  if (!listed) return tl::unexpected(listed.error());
  if (names.empty())
    return fail(ErrorCode::kUnavailable, "no node is up: start tierpilotd on a machine first");
  return names;
}

Status register_datasets(ClusterConnection& connection, const Workload& workload,
                         const std::vector<std::string>& nodes) {
  for (size_t i = 0; i < workload.datasets.size(); ++i) {
    const auto& dataset = workload.datasets[i];
    auto request = connection.cluster().datasetAddRequest();
    request.setRequestId(draw_request_id());
    request.setName(dataset.name);
    request.setNode(nodes[i % nodes.size()]);
    auto random = request.initSource().initRandom();
    random.setBytes(dataset.bytes);
    random.setSeed(dataset.seed);
    if (auto answer = connection.call(kj::mv(request), kDatasetAddMs); !answer)
      return fail(answer.error().code,
                  fmt::format("dataset '{}' on node '{}': {}", dataset.name,
                              nodes[i % nodes.size()], answer.error().message));
  }
  return {};
}

Status remove_datasets(ClusterConnection& connection, const Workload& workload) {
  for (const auto& dataset : workload.datasets) {
    auto request = connection.cluster().datasetRemoveRequest();
    request.setName(dataset.name);
    auto answer = connection.call(kj::mv(request));
    if (!answer && answer.error().code != ErrorCode::kNotFound)
      return tl::unexpected(answer.error());
  }
  return {};
}

Result<ReplayResult> replay(ClusterConnection& connection, const Workload& workload,
                            const std::string& program,
                            const std::function<Status(const ReplayProgress&)>& tick) {
  Submitter submitter(connection, workload, program);
  if (auto status = wait_until_taken(connection, submitter, tick); !status)
    return tl::unexpected(status.error());
  ReplayResult result{.tasks = {}, .latest_submit_ms = submitter.latest_ms()};
  std::vector<uint64_t> open = submitter.ids();
  while (!open.empty()) {
    auto status = collect(connection, open, result.tasks);
    if (status) status = tick({submitter.ids().size(), result.tasks.size()});
    if (!status) return tl::unexpected(status.error());
  }
  return result;
}

}  // namespace tierpilot::tierload
