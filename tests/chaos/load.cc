#include "tests/chaos/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/system/process.h"

namespace tierpilot::chaos {
namespace {

constexpr size_t kAtOnce = 4;
constexpr uint64_t kOneWritesOf = 5;
constexpr uint64_t kOneGangOf = 11;
constexpr uint32_t kRanks = 3;
// Of tasks, with which all have an end soon after the last fault, also on a busy machine.
constexpr uint64_t kMostWaiting = 40;
constexpr int64_t kTaskPatienceMs = 120'000;

}  // namespace

bool Load::reconnect() {
  if (!connected_) connected_ = client_.connect().has_value();
  return connected_;
}

Status Load::prepare() {
  if (auto status = client_.connect(); !status) return status;
  connected_ = true;
  return writers_.make_datasets(client_);
}

// Some run for nearly as long as a lease.
void Load::add_requests() {
  while (open_.size() < kAtOnce) {
    const auto id = fmt::format("r{}", ++made_);
    if (made_ % kOneWritesOf == 0)
      open_[id] = {id, {writers_.next()}};
    else if (made_ % kOneGangOf == 0)
      open_[id] = {id, {journal_.gang("sleep 0.3", kRanks)}};
    else
      open_[id] = {id, {journal_.task(made_ % 7 == 0 ? "sleep 1.5" : "sleep 0.05")}};
  }
}

void Load::submit_some() {
  if (!reconnect()) return;
  const auto health = client_.health();
  if (!health) {
    connected_ = false;
    return;
  }
  if ((*health)["queued"] < kMostWaiting) add_requests();
  submit_open();
}

void Load::submit_open() {
  std::vector<test::Request> requests;
  for (const auto& [id, request] : open_) requests.push_back(request);
  if (requests.empty()) return;
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
    const auto& task = requests[i].tasks.at(0);
    if (open_.erase(id) > 0 && !task.datasets.empty()) writers_.acknowledged(task);
    if (task.ranks > 0) gangs_.insert(answers[i]->tasks.at(0));
    const auto [known, fresh] = acknowledged_.emplace(id, *answers[i]);
    if (!fresh && !(known->second == *answers[i]))
      wrong_.push_back(fmt::format("request {} was answered differently", id));
  }
}

std::vector<std::string> Load::settle() {
  const bool answered = test::eventually([&] {
    if (reconnect() && !open_.empty()) submit_open();
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
  // Ranks are tasks of their own.
  const size_t wanted = tasks.size() + gangs_.size() * kRanks;
  if (!all || all->size() != wanted)
    wrong_.push_back(
        fmt::format("there are {} tasks, and {} were acknowledged", all ? all->size() : 0, wanted));
  check_journal();
  for (auto& line : writers_.check(client_, address_)) wrong_.push_back(std::move(line));
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
    for (const uint64_t task : submitted.tasks)
      if (gangs_.contains(task))
        check_gang(record, task);
      else
        check_runs(record, task);
}

void Load::check_runs(const test::Journal::Record& record, uint64_t task) {
  const auto found = record.runs.find(std::to_string(task));
  size_t ended = 0;
  if (found != record.runs.end())
    for (const auto& run : found->second) ended += run.ended;
  if (ended == 0) wrong_.push_back(fmt::format("task {} never ran to its end", task));
  runs_ += found == record.runs.end() ? 0 : found->second.size();
  repeated_ += ended > 1;
}

// All its ranks have to end in one try.
void Load::check_gang(const test::Journal::Record& record, uint64_t gang) {
  std::map<int, uint32_t> ended;  // ranks by attempt
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto found = record.runs.find(fmt::format("{}.{}", gang, rank));
    if (found == record.runs.end()) continue;
    runs_ += found->second.size();
    for (const auto& run : found->second) ended[run.attempt] += run.ended;
  }
  const auto whole = std::count_if(ended.begin(), ended.end(),
                                   [](const auto& tried) { return tried.second == kRanks; });
  if (whole == 0) wrong_.push_back(fmt::format("gang {} never ran to its end as a whole", gang));
  repeated_ += whole > 1;
}

}  // namespace tierpilot::chaos
