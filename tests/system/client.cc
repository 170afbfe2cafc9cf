#include "tests/system/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "tools/cluster/connection.h"
#include "tools/cluster/message_json.h"
#include "tools/cluster/pages.h"

namespace tierpilot::test {
namespace {

constexpr int64_t kAnswerMs = 30'000;
constexpr int64_t kManyMs = 300'000;
constexpr int64_t kWaitSliceMs = 5'000;
constexpr uint32_t kRestarts = 9;

template <class List, class Texts>
void fill_texts(List list, const Texts& texts) {
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, texts[i]);
}

void fill(wire::TaskSpec::Builder spec, const TaskPlan& task) {
  const auto count = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
  spec.setName(task.name);
  spec.setUnits(task.units);
  spec.setMemoryBytes(task.memory_bytes);
  spec.setNode(task.node);
  fill_texts(spec.initArgv(count(task.argv)), task.argv);
  fill_texts(spec.initAfter(count(task.after)), task.after);
  auto datasets = spec.initDatasets(count(task.datasets));
  for (uint32_t i = 0; i < datasets.size(); ++i) {
    datasets[i].setDataset(task.datasets[i].first);
    datasets[i].setWrite(task.datasets[i].second);
  }
  auto env = spec.initEnv(count(task.env));
  for (uint32_t i = 0; i < env.size(); ++i) {
    env[i].setName(task.env[i].first);
    env[i].setValue(task.env[i].second);
  }
  if (task.ranks == 0) return;
  auto gang = spec.initGang();
  gang.setRanks(task.ranks);
  gang.setEngine("cpu");
  gang.setMaxRestarts(kRestarts);
}

auto submit_request(ClusterConnection& connection, const std::string& id,
                    const std::vector<TaskPlan>& tasks) {
  auto request = connection.cluster().submitRequest();
  request.setRequestId(id);
  auto specs = request.initTasks(static_cast<uint32_t>(tasks.size()));
  for (uint32_t i = 0; i < specs.size(); ++i) fill(specs[i], tasks[i]);
  return request;
}

Submitted read(wire::Cluster::SubmitResults::Reader answer) {
  Submitted submitted{answer.getSubmission(), {}};
  for (const uint64_t id : answer.getTasks()) submitted.tasks.push_back(id);
  return submitted;
}

template <class Answer, class Get>
Result<Json> json_of(const Result<Answer>& answer, Get get) {
  if (!answer) return tl::unexpected(answer.error());
  return get(*answer);
}

}  // namespace

TaskPlan shell_task(const std::string& script) {
  TaskPlan task;
  task.argv = {"/bin/sh", "-c", script};
  return task;
}

bool has_ended(const Json& task) {
  const auto state = task.at("state").get<std::string>();
  return state == "succeeded" || state == "failed" || state == "cancelled";
}

Client::Client(std::string address) : address_(std::move(address)) {}
Client::~Client() = default;

Status Client::connect() {
  disconnect();
  auto connection = ClusterConnection::open({.address = address_, .timeout_ms = kAnswerMs});
  if (!connection) return tl::unexpected(connection.error());
  connection_ = std::move(*connection);
  return {};
}

void Client::disconnect() {
  connection_.reset();
}

Result<Submitted> Client::submit(const std::vector<TaskPlan>& tasks,
                                 const std::string& request_id) {
  auto answer = connection_->call(
      submit_request(*connection_, request_id.empty() ? draw_request_id() : request_id, tasks));
  if (!answer) return tl::unexpected(answer.error());
  return read(*answer);
}

std::vector<Result<Submitted>> Client::submit_burst(const std::vector<Request>& requests,
                                                    int64_t ms,
                                                    const std::function<void()>& meanwhile) {
  std::vector<std::optional<Result<Submitted>>> answers(requests.size());
  auto calls = kj::heapArrayBuilder<kj::Promise<void>>(requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    calls.add(submit_request(*connection_, requests[i].id, requests[i].tasks)
                  .send()
                  .then([&answers, i](auto&& answer) { answers[i] = read(answer); },
                        [&answers, i](kj::Exception&& exception) {
                          answers[i] = tl::unexpected(to_error(exception));
                        })
                  .eagerlyEvaluate(nullptr));
  connection_->loop().after_ms(ms).wait(connection_->loop().wait_scope());
  meanwhile();
  if (auto all = connection_->wait(kj::joinPromises(calls.finish())); !all)
    for (auto& answer : answers)
      if (!answer) answer = tl::unexpected(all.error());
  std::vector<Result<Submitted>> result;
  for (auto& answer : answers) result.push_back(std::move(*answer));
  return result;
}

Status Client::submit_many(const TaskPlan& task, int count, int window) {
  int started = 0;
  std::function<kj::Promise<void>()> next = [&]() -> kj::Promise<void> {
    if (started++ >= count) return kj::READY_NOW;
    return submit_request(*connection_, draw_request_id(), {task}).send().ignoreResult().then([&] {
      return next();
    });
  };
  auto lanes = kj::heapArrayBuilder<kj::Promise<void>>(static_cast<size_t>(window));
  for (int i = 0; i < window; ++i) lanes.add(next());
  return connection_->wait(kj::joinPromises(lanes.finish()), kManyMs);
}

Result<Json> Client::health() {
  return json_of(connection_->call(connection_->cluster().healthRequest()),
                 [](const auto& answer) { return message_json(answer.getHealth()); });
}

Result<Json> Client::nodes() {
  auto all = Json::array();
  auto status = for_each_node(
      *connection_, [&](wire::NodeEntry::Reader node) { all.push_back(message_json(node)); });
  if (!status) return tl::unexpected(status.error());
  return all;
}

Result<Json> Client::tasks() {
  auto all = Json::array();
  auto status = for_each_task(*connection_, {},
                              [&](wire::Task::Reader task) { all.push_back(message_json(task)); });
  if (!status) return tl::unexpected(status.error());
  return all;
}

Result<Json> Client::show(uint64_t task) {
  auto request = connection_->cluster().taskShowRequest();
  request.setId(task);
  return json_of(connection_->call(kj::mv(request)),
                 [](const auto& answer) { return message_json(answer.getTask()); });
}

Result<Json> Client::cancel(uint64_t task) {
  auto request = connection_->cluster().taskCancelRequest();
  request.setId(task);
  return json_of(connection_->call(kj::mv(request)),
                 [](const auto& answer) { return message_json(answer.getTask()); });
}

Result<Json> Client::explain(uint64_t task) {
  auto request = connection_->cluster().taskExplainRequest();
  request.setId(task);
  return json_of(connection_->call(kj::mv(request)),
                 [](const auto& answer) { return messages_json(answer.getDecisions()); });
}

Result<std::string> Client::log(uint64_t task, const std::string& stream) {
  auto request = connection_->cluster().taskLogRequest();
  request.setId(task);
  request.setStream(stream);
  request.setMaxBytes(1 << 20);
  auto answer = connection_->call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  const auto data = answer->getData().asChars();
  return std::string(data.begin(), data.size());
}

Result<Json> Client::wait(uint64_t task, int64_t timeout_ms) {
  const int64_t deadline_ns = system_clock().boot_ns() + timeout_ms * 1'000'000;
  for (;;) {
    auto request = connection_->cluster().taskWaitRequest();
    request.setIds(kj::ArrayPtr<const uint64_t>(&task, 1));
    request.setTimeoutMs(kWaitSliceMs);
    auto answer = connection_->call(kj::mv(request), kWaitSliceMs);
    if (!answer) return tl::unexpected(answer.error());
    auto json = message_json(answer->getTasks()[0]);
    if (has_ended(json)) return json;
    if (system_clock().boot_ns() > deadline_ns)
      return fail(ErrorCode::kTimeout, fmt::format("task {} has not ended: {}", task, json.dump()));
  }
}

Result<Json> Client::add_dataset_file(const std::string& name, const std::string& path,
                                      const std::string& node) {
  auto request = connection_->cluster().datasetAddRequest();
  request.setName(name);
  request.setNode(node);
  request.initSource().setFile(path);
  return json_of(connection_->call(kj::mv(request), kDatasetAddMs),
                 [](const auto& answer) { return message_json(answer.getDataset()); });
}

Result<Json> Client::add_dataset_zeros(const std::string& name, uint64_t bytes,
                                       const std::string& node) {
  auto request = connection_->cluster().datasetAddRequest();
  request.setName(name);
  request.setNode(node);
  request.initSource().setZeroBytes(bytes);
  return json_of(connection_->call(kj::mv(request), kDatasetAddMs),
                 [](const auto& answer) { return message_json(answer.getDataset()); });
}

Result<Json> Client::dataset(const std::string& name) {
  auto request = connection_->cluster().datasetShowRequest();
  request.setName(name);
  return json_of(connection_->call(kj::mv(request)),
                 [](const auto& answer) { return message_json(answer.getDataset()); });
}

}  // namespace tierpilot::test
