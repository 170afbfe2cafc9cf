// What a test asks of a coordinator: calls by name, answers as JSON in the schema's words.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tierpilot {
class ClusterConnection;
}

namespace tierpilot::test {

using Json = nlohmann::ordered_json;

struct TaskPlan {
  std::vector<std::string> argv;
  std::string name;
  std::vector<std::pair<std::string, bool>> datasets;  // name, whether it is written
  std::vector<std::string> after;
  std::string node;  // empty: the policy chooses
  uint32_t units = 1;
  uint64_t memory_bytes = 0;
  std::vector<std::pair<std::string, std::string>> env;
  uint32_t ranks = 0;  // of a gang on cores; 0: it is none
};

TaskPlan shell_task(const std::string& script);

struct Submitted {
  uint64_t submission = 0;
  std::vector<uint64_t> tasks;
  bool operator==(const Submitted&) const = default;
};

struct Request {
  std::string id;
  std::vector<TaskPlan> tasks;
};

// One at a time in a thread: a thread has one event loop.
class Client {
 public:
  explicit Client(std::string address);
  ~Client();

  // Once; the error says why not.
  Status connect();
  void disconnect();

  Result<Submitted> submit(const std::vector<TaskPlan>& tasks, const std::string& request_id = "");
  // Sends all at once, calls `meanwhile` after `ms` and collects every answer, also those that were
  // under way then.
  std::vector<Result<Submitted>> submit_burst(const std::vector<Request>& requests, int64_t ms,
                                              const std::function<void()>& meanwhile);
  // `count` submits of one task each, `window` of them on their way at a time; stops at the first
  // that is refused.
  Status submit_many(const TaskPlan& task, int count, int window);
  Result<Json> health();
  Result<Json> nodes();
  Result<Json> tasks();  // all, in pages
  Result<Json> show(uint64_t task);
  Result<Json> cancel(uint64_t task);
  Result<Json> explain(uint64_t task);
  Result<std::string> log(uint64_t task, const std::string& stream = "stdout");
  // Until the task has ended; kTimeout after `timeout_ms`.
  Result<Json> wait(uint64_t task, int64_t timeout_ms = 60'000);
  Result<Json> add_dataset_file(const std::string& name, const std::string& path,
                                const std::string& node = "");
  Result<Json> add_dataset_zeros(const std::string& name, uint64_t bytes,
                                 const std::string& node = "");
  Result<Json> dataset(const std::string& name);

 private:
  std::string address_;
  std::unique_ptr<ClusterConnection> connection_;
};

bool has_ended(const Json& task);

}  // namespace tierpilot::test
