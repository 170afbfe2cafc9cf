// A node's attempts with a pool and a runner that only do what the test says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/agent/tasks/task_table.h"

namespace tierpilot::agent {

class FakePool final : public DataPlane {
 public:
  void serve(AttemptId owner, const std::vector<ServeItem>&,
             std::function<void(Result<Served>)> done) override {
    serving[owner] = std::move(done);
  }
  void cancel(AttemptId owner) override { cancelled.push_back(owner); }
  void finish(AttemptId owner, bool success, std::function<void(Committed)> done) override {
    finished.emplace_back(owner, success);
    done(commit);
  }
  Result<double> evict_gb_per_s() const override { return 2.0; }
  uint64_t reference_ns(uint64_t bytes) const override { return bytes * 2; }

  void served(AttemptId owner, Result<Served> data) {
    auto done = std::move(serving.extract(owner).mapped());
    done(std::move(data));
  }

  std::map<AttemptId, std::function<void(Result<Served>)>> serving;
  std::vector<AttemptId> cancelled;
  std::vector<std::pair<AttemptId, bool>> finished;
  Committed commit = std::vector<ReplicaChange>{};
};

class FakeRunner final : public TaskRunner {
 public:
  Status launch(const LaunchOrder& order) override {
    if (!refusal.empty()) return fail(ErrorCode::kNotFound, refusal);
    launched.push_back(order.assignment.attempt);
    cpus[order.assignment.attempt] = order.cpus;
    paths = order.datasets;
    return {};
  }
  void cancel(AttemptId attempt, const std::string&) override { cancelled.push_back(attempt); }

  Status pause(AttemptId attempt, bool paused) override {
    pauses.emplace_back(attempt, paused);
    return {};
  }
  void confine(AttemptId attempt, const CpuShare& share) override { shares[attempt] = share; }
  void confine_gpu(AttemptId attempt, uint32_t milli) override { gpu_milli[attempt] = milli; }
  std::map<AttemptId, uint32_t> gpu_milli;
  void forget(uint64_t task) override { forgotten.push_back(task); }
  void acknowledged(AttemptId attempt) override { told.push_back(attempt); }

  std::vector<AttemptId> launched, cancelled, told;
  std::vector<uint64_t> forgotten;
  std::vector<std::pair<AttemptId, bool>> pauses;
  std::map<AttemptId, std::vector<int>> cpus;
  std::map<AttemptId, CpuShare> shares;
  std::vector<ServedItem> paths;
  std::string refusal;
};

inline constexpr AttemptId kFirst{1, 1}, kSecond{2, 1}, kThird{3, 1};

class TaskTableTest : public testing::Test {
 protected:
  TaskTableTest() { table.lease_granted(INT64_MAX); }

  static Assignment work(AttemptId id, uint32_t units = 1, std::vector<std::string> datasets = {}) {
    Assignment assignment;
    assignment.attempt = id;
    assignment.argv = {"/bin/true"};
    assignment.units = units;
    for (auto& name : datasets) assignment.datasets.push_back({name, 1, 100, false, {}});
    return assignment;
  }
  static ExitReport exit_code(int code) {
    ExitReport exit;
    exit.how = TaskEnd::kExited;
    exit.process.emplace().exit_code = code;
    return exit;
  }
  template <class T>
  std::vector<T> events() const {
    std::vector<T> found;
    for (const auto& body : reported)
      if (const auto* event = std::get_if<T>(&body)) found.push_back(*event);
    return found;
  }
  std::string how(AttemptId id) const {
    for (const auto& event : events<ExitedEvent>())
      if (event.attempt == id) return std::string(task_end_name(event.exit.how));
    return "not ended";
  }

  FakePool pool;
  FakeRunner runner;
  ManualClock clock;
  std::vector<EventBody> reported;
  TaskTable table{{.cpus = {4, 5}, .units = 2, .memory_bytes = 1000},
                  pool,
                  runner,
                  clock,
                  [this](EventBody body) { reported.push_back(std::move(body)); }};
};

}  // namespace tierpilot::agent
