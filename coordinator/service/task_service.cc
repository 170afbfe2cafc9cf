#include "coordinator/service/task_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/outcomes/told_task.h"
#include "coordinator/model_json.h"
#include "coordinator/service/wire.h"
#include "coordinator/store/records.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kMostTasks = 500;
constexpr uint32_t kMaxLogBytes = 1 << 20;
constexpr uint32_t kMaxWaitMs = 60'000;
constexpr size_t kMaxWaits = 256;  // of a client at a time

// A page ends early rather than outgrow a frame.
template <class Get>
auto cut_to_frame(std::vector<Task> tasks, Get size_of) {
  size_t bytes = 0;
  size_t keep = 0;
  while (keep < tasks.size() && (keep == 0 || bytes < kPageBytes)) bytes += size_of(tasks[keep++]);
  tasks.resize(keep);
  return tasks;
}

size_t task_wire_size(const Task& task) {
  return 1024 + 2 * spec_text(task.spec).size() + task.reason.size();
}

std::vector<Task> ranks_of(Core& core, const Task& gang) {
  std::vector<Task> ranks;
  for (const uint64_t id : core.state.tasks.ranks_of(gang.id))
    ranks.push_back(value_or_throw(core.task(id)));
  if (!ranks.empty()) return ranks;
  // It has ended: its ranks are on disk, among the tasks of its submission.
  records::TaskFilter filter{.submission = gang.submission, .after = gang.id};
  while (ranks.size() < gang.spec.gang.most_ranks()) {
    auto page = value_or_throw(records::tasks(core.state.store.reader(), filter));
    if (page.empty()) break;
    filter.after = page.back().id;
    for (auto& task : page)
      if (task.rank && task.rank->gang == gang.id) ranks.push_back(std::move(task));
  }
  return ranks;
}

void write_last_ranks(Core& core, const Task& gang, wire::Task::Builder out) {
  auto ranks = ranks_of(core, gang);
  // Those that its last try did without.
  if (gang.attempt == 0)
    ranks.resize(std::min<size_t>(ranks.size(), gang.spec.gang.ranks));
  else
    std::erase_if(ranks, [&](const Task& rank) { return rank.attempt != gang.attempt; });
  write_ranks(std::move(ranks), out);
}

// The one whose output stands for a gang's; other tasks stand for themselves.
const Task& first_rank(Core& core, const Task& task, std::vector<Task>& ranks) {
  if (!task.spec.is_gang()) return task;
  ranks = ranks_of(core, task);
  return ranks.empty() ? task : ranks.front();
}

}  // namespace

void TaskService::write(const Task& task, wire::Task::Builder out) const {
  write_task(task, out);
  if (!task.spec.env.empty() && task.user != caller_->peer().name &&
      !caller_->sees_environments()) {
    // Where keys and passwords stand.
    out.getSpec().initEnv(0);
    out.setHidden("its environment: shown to its submitter and to the operator");
  }
  if (const auto kept = kept_back(caller_->core().state, task)) write_kept_back(*kept, out);
}

kj::Promise<void> TaskService::submit(SubmitContext context) {
  const auto params = context.getParams();
  std::vector<TaskSpec> specs;
  caller_->allow_submit();
  for (const auto spec : params.getTasks()) specs.push_back(value_or_throw(read_spec(spec)));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().intake.submit(
      {caller_->peer().name, text(params.getRequestId())}, std::move(specs),
      [context, fulfiller, who = caller_->name(),
       &accepted = caller_->shared().submissions](Result<SubmitReceipt> receipt) mutable {
        if (!receipt) return (*fulfiller)->reject(to_exception(receipt.error()));
        accepted.accepted(who, *receipt);
        auto results = context.getResults();
        results.setSubmission(receipt->submission);
        auto ids = results.initTasks(static_cast<unsigned>(receipt->task_count));
        for (unsigned i = 0; i < ids.size(); ++i) ids.set(i, receipt->first_task + i);
        (*fulfiller)->fulfill();
      });
  return kj::mv(paf.promise);
}

kj::Promise<void> TaskService::taskList(TaskListContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  records::TaskFilter filter;
  if (const auto name = text(params.getState()); !name.empty()) {
    filter.state = parse_task_state(name);
    if (!filter.state)
      kj::throwFatalException(to_exception(
          {ErrorCode::kInvalid,
           fmt::format("'{}' is not a state: waiting, queued, assigned, running, succeeded, failed "
                       "or cancelled",
                       name)}));
  }
  filter.submission = params.getSubmission();
  filter.after = params.getAfter();
  filter.limit = params.getLimit() ? std::min(params.getLimit(), kMostTasks) : kMostTasks;
  filter.most_bytes = kPageBytes;
  auto tasks = cut_to_frame(
      value_or_throw(records::tasks(caller_->core().state.store.reader(), filter)), task_wire_size);
  auto out = context.getResults().initTasks(count(tasks));
  for (unsigned i = 0; i < out.size(); ++i)
    write(told_task(caller_->core().state, std::move(tasks[i])), out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> TaskService::historyTasks(HistoryTasksContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  records::HistoryFilter filter{.from_ms = params.getFromMs(),
                                .until_ms = params.getUntilMs(),
                                .after = params.getAfter(),
                                .limit = kMostTasks};
  if (params.getLimit()) filter.limit = std::min(params.getLimit(), kMostTasks);
  auto page = value_or_throw(records::history(caller_->core().state.store.reader(), filter));
  for (auto& task : page.tasks) {
    task = told_task(caller_->core().state, std::move(task));
    task.spec.argv.clear();  // what a command was told is nobody else's
    task.spec.env.clear();
    task.spec.after.clear();
  }
  const size_t found = page.tasks.size();
  page.tasks = cut_to_frame(std::move(page.tasks), task_wire_size);
  if (page.tasks.size() < found) page.next = page.tasks.back().id;
  auto results = context.getResults();
  results.setNext(page.next);
  auto out = results.initTasks(count(page.tasks));
  for (unsigned i = 0; i < out.size(); ++i) write_task(page.tasks[i], out[i]);
  return kj::READY_NOW;
}

std::optional<ShownShare> TaskService::share_of(const Task& task) const {
  if (auto share = caller_->core().shares.share_of(task.id)) return share;
  return ended_share(caller_->core().state, task);
}

kj::Promise<void> TaskService::taskShow(TaskShowContext context) {
  caller_->allow_reading();
  const auto task = value_or_throw(caller_->core().task(context.getParams().getId()));
  auto out = context.getResults().initTask();
  write(task, out);
  if (task.spec.is_gang()) write_last_ranks(caller_->core(), task, out);
  if (const auto why = caller_->core().growth.reason_of(task); !why.empty()) out.setWidth(why);
  std::vector<Task> ranks;
  const auto& speaker = first_rank(caller_->core(), task, ranks);
  write_progress(speaker.id, caller_->core().progress.of(speaker.id), out);
  write_checkpoints(caller_->core().checkpoints.of(task.id), out);
  if (const auto* totals = caller_->core().checkpoints.totals(task.id))
    write_checkpointing(*totals, out.initCheckpointing());
  if (const auto share = caller_->core().elastic.share_of(task.id))
    write_share(*share, caller_->core().state.settings.elastic_allocator, out.initShare());
  if (const auto share = share_of(task))
    write_unit_share(*share, caller_->core().state.settings.share_policy, out.initUnitShare());
  return kj::READY_NOW;
}

kj::Promise<void> TaskService::taskWait(TaskWaitContext context) {
  context.allowCancellation();  // else it waits on where its client has gone
  caller_->allow_reading();
  const auto params = context.getParams();
  std::vector<uint64_t> ids;
  for (const uint64_t id : params.getIds()) ids.push_back(id);
  if (ids.size() > kMostTasks)
    kj::throwFatalException(to_exception(
        {ErrorCode::kInvalid, fmt::format("wait for at most {} tasks at once", kMostTasks)}));
  for (const uint64_t id : ids) value_or_throw(caller_->core().task(id));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  auto left = std::make_shared<size_t>(ids.size() + 1);
  const auto one_ended = [fulfiller, left] {
    if (--*left == 0) (*fulfiller)->fulfill();
  };
  if (waits_->size() >= kMaxWaits)
    kj::throwFatalException(to_exception(
        {ErrorCode::kExhausted,
         fmt::format("{} waits are under way on this connection: one call takes up to {} tasks",
                     kMaxWaits, kMostTasks)}));
  const auto waits = waits_->emplace(waits_->end());
  for (const uint64_t id : ids)
    if (auto wait = caller_->core().when_ended(id, one_ended)) waits->push_back(std::move(*wait));
  one_ended();
  const auto timeout_ms = std::min(params.getTimeoutMs(), kMaxWaitMs);
  return paf.promise.exclusiveJoin(caller_->shared().loop.after_ms(timeout_ms))
      .then([this, context, ids, left]() mutable {
        std::vector<Task> tasks;
        for (const uint64_t id : ids) tasks.push_back(value_or_throw(caller_->core().task(id)));
        tasks = cut_to_frame(std::move(tasks), task_wire_size);
        auto results = context.getResults();
        results.setDone(*left == 0);
        auto out = results.initTasks(count(tasks));
        for (unsigned i = 0; i < out.size(); ++i) write(tasks[i], out[i]);
      })
      // Answered, timed out, or called off by its client.
      .attach(kj::defer([all = waits_, waits] { all->erase(waits); }));
}

kj::Promise<void> TaskService::taskCancel(TaskCancelContext context) {
  const uint64_t id = context.getParams().getId();
  caller_->allow_change_of(value_or_throw(caller_->core().task(id)),
                           fmt::format("cancel task {}", id));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().lifecycle.cancel(id, [this, id, context, fulfiller](Status status) mutable {
    auto task = caller_->core().task(id);
    if (!status || !task)
      return (*fulfiller)->reject(to_exception(status ? task.error() : status.error()));
    write(*task, context.getResults().initTask());
    (*fulfiller)->fulfill();
  });
  return kj::mv(paf.promise);
}

wire::Node::Client& TaskService::node_of(const Task& task, const char* what) const {
  auto* card = caller_->shared().cards.find(task.node);
  const auto* node = caller_->core().state.registry.find(task.node);
  if (!card || !node || !node->link)
    kj::throwFatalException(to_exception(
        {ErrorCode::kUnreachable,
         fmt::format("task {}: {} node '{}', which is not connected", task.id, what, task.node)}));
  return KJ_ASSERT_NONNULL(card->client);
}

kj::Promise<void> TaskService::taskPause(TaskPauseContext context) {
  const auto params = context.getParams();
  const auto task = value_or_throw(caller_->core().task(params.getId()));
  caller_->allow_change_of(
      task, fmt::format("{} task {}", params.getPaused() ? "pause" : "resume", task.id));
  if (task.spec.is_gang() || task.rank)
    kj::throwFatalException(to_exception(
        {ErrorCode::kConflict,
         fmt::format("task {} is a gang, or a rank of one: ranks that stand still make the others "
                     "fail, so that gangs cannot be paused",
                     task.id)}));
  if (task.state != TaskState::kRunning)
    kj::throwFatalException(
        to_exception({ErrorCode::kConflict,
                      fmt::format("task {} is {}: only a running task can be paused and resumed",
                                  task.id, task_state_name(task.state))}));
  const AttemptId attempt{task.id, task.attempt};
  const bool paused = params.getPaused();
  auto request = node_of(task, "it runs on").pauseRequest();
  write_attempt(attempt, request.initAttempt());
  request.setPaused(paused);
  return request.send().then([this, context, attempt, paused](auto&&) mutable {
    auto paf = kj::newPromiseAndFulfiller<void>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    caller_->core().lifecycle.paused(
        attempt, paused, [this, attempt, context, fulfiller](Status status) mutable {
          auto now = caller_->core().task(attempt.task);
          if (!status || !now)
            return (*fulfiller)->reject(to_exception(status ? now.error() : status.error()));
          write(*now, context.getResults().initTask());
          (*fulfiller)->fulfill();
        });
    return kj::mv(paf.promise);
  });
}

kj::Promise<void> TaskService::taskLog(TaskLogContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  const auto asked = value_or_throw(caller_->core().task(params.getId()));
  std::vector<Task> ranks;
  const Task& task = first_rank(caller_->core(), asked, ranks);
  if (task.attempt == 0)
    kj::throwFatalException(to_exception(
        {ErrorCode::kNotFound, fmt::format("task {} has not run: there is no log", task.id)}));
  auto request = node_of(task, "its log is on").readLogRequest();
  write_attempt({task.id, task.attempt}, request.initAttempt());
  request.setStream(params.getStream());
  request.setOffset(params.getOffset());
  request.setMaxBytes(
      std::min(params.getMaxBytes() ? params.getMaxBytes() : kMaxLogBytes, kMaxLogBytes));
  const bool ended = is_ended(task.state);
  return request.send().then([context, ended](auto&& response) mutable {
    auto results = context.getResults();
    results.setData(response.getData());
    results.setDropped(response.getDropped());
    // More may come while the task runs.
    results.setEnd(response.getEnd() && ended);
  });
}

kj::Promise<void> TaskService::taskExplain(TaskExplainContext context) {
  caller_->allow_reading();
  const auto task = value_or_throw(caller_->core().task(context.getParams().getId()));
  const auto decisions =
      value_or_throw(records::decisions(caller_->core().state.store.reader(), task.id));
  auto results = context.getResults();
  auto shown = results.initTask();
  write(task, shown);
  if (const auto share = caller_->core().elastic.share_of(task.id)) {
    const auto& allocator = caller_->core().state.settings.elastic_allocator;
    write_share(*share, allocator, shown.initShare());
    constexpr size_t kMostShown = 100;
    auto others = caller_->core().elastic.shared_with(task.id);
    others.resize(std::min(others.size(), kMostShown));
    auto with = shown.initSharedWith(count(others));
    for (unsigned i = 0; i < with.size(); ++i) write_share(others[i], allocator, with[i]);
  }
  if (const auto share = share_of(task))
    write_unit_share(*share, caller_->core().state.settings.share_policy, shown.initUnitShare());
  const auto looks = caller_->core().shares.looks_now(task.id);
  write_unit_looks(looks, results.initUnits(count(looks)));
  auto out = results.initDecisions(count(decisions));
  for (unsigned i = 0; i < out.size(); ++i) write_decision(decisions[i], out[i]);
  return kj::READY_NOW;
}

}  // namespace tierpilot
