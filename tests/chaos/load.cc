#include "tests/chaos/load.h"

#include <fmt/format.h>

#include <set>

#include "tests/system/process.h"

namespace tierpilot::chaos {
namespace {

constexpr size_t kAtOnce = 4;
constexpr int64_t kTaskPatienceMs = 120'000;

}  // namespace

bool Load::reconnect() {
  if (!connected_) connected_ = client_.connect().has_value();
  return connected_;
}

void Load::submit_some() {
  if (!reconnect()) return;
  // Some run for nearly as long as a lease.
  while (open_.size() < kAtOnce) {
    const auto id = fmt::format("r{}", ++made_);
    open_[id] = {id, {journal_.task(made_ % 7 == 0 ? "sleep 1.5" : "sleep 0.05")}};
  }
  std::vector<test::Request> requests;
  for (const auto& [id, request] : open_) requests.push_back(request);
  note(requests, client_.submit_burst(requests, 0, [] {}));
}

void Load::note(const std::vector<test::Request>& requests,
                const std::vector<Result<test::Submitted>>& answers) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& id = requests[i].id;
    if (!answers[i]) {
      connected_ = false;
      const auto code = answers[i].error().code;
      if (code != ErrorCode::kUnreachable && code != ErrorCode::kTimeout)
        wrong_.push_back(fmt::format("request {}: {}", id, answers[i].error().message));
      continue;
    }
    open_.erase(id);
    const auto [known, fresh] = acknowledged_.emplace(id, *answers[i]);
    if (!fresh && !(known->second == *answers[i]))
      wrong_.push_back(fmt::format("request {} was answered differently", id));
  }
}

std::vector<std::string> Load::settle() {
  const bool answered = test::eventually([&] {
    if (reconnect() && !open_.empty()) submit_some();
    return connected_ && open_.empty();
  });
  if (!answered) wrong_.push_back(fmt::format("{} requests get no answer", open_.size()));
  std::set<uint64_t> tasks;
  for (const auto& [id, submitted] : acknowledged_)
    for (const uint64_t task : submitted.tasks) {
      if (!tasks.insert(task).second)
        wrong_.push_back(fmt::format("task {} answers two requests", task));
      check_task(id, task);
    }
  const auto all = client_.tasks();
  if (!all || all->size() != tasks.size())
    wrong_.push_back(fmt::format("there are {} tasks, and {} were acknowledged",
                                 all ? all->size() : 0, tasks.size()));
  check_journal();
  client_.disconnect();
  return wrong_;
}

void Load::check_task(const std::string& request, uint64_t task) {
  const auto ended = client_.wait(task, kTaskPatienceMs);
  if (!ended)
    wrong_.push_back(fmt::format("request {}: {}", request, ended.error().message));
  else if ((*ended)["state"] != "succeeded")
    wrong_.push_back(fmt::format("task {} has {}: {}", task, (*ended)["state"].get<std::string>(),
                                 (*ended)["reason"].get<std::string>()));
}

void Load::check_journal() {
  const auto record = journal_.read();
  for (const auto& line : record.overlaps) wrong_.push_back("ran twice at once: " + line);
  for (const auto& [id, submitted] : acknowledged_)
    for (const uint64_t task : submitted.tasks) {
      const auto found = record.runs.find(std::to_string(task));
      size_t ended = 0;
      if (found != record.runs.end())
        for (const auto& run : found->second) ended += run.ended;
      if (ended == 0) wrong_.push_back(fmt::format("task {} never ran to its end", task));
      runs_ += found == record.runs.end() ? 0 : found->second.size();
      repeated_ += ended > 1;
    }
}

}  // namespace tierpilot::chaos
