#include "tests/dst/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/store/records.h"
#include "tests/dst/swapping.h"

namespace tierpilot::dst {
namespace {

constexpr int64_t kPatienceNs = kSecond;
constexpr int kTries = 40;
constexpr uint64_t kDatasets = 3;
constexpr uint64_t kJobs = 1'000'000;  // a plan has fewer

std::string dataset_name(uint64_t number) {
  return fmt::format("d{}", number);
}

// Of some jobs one task: ranks read datasets and write none.
void make_gang(uint64_t seed, uint64_t number, std::vector<TaskSpec>& tasks) {
  Random random(seed, fmt::format("gang {}", number));
  if (!random.chance(0.3)) return;
  auto& task =
      tasks[static_cast<size_t>(random.between(0, static_cast<int64_t>(tasks.size()) - 1))];
  task.gang.ranks = static_cast<uint32_t>(random.between(2, 4));
  task.gang.max_restarts = static_cast<uint32_t>(random.between(0, 2));
  for (auto& use : task.datasets) use.write = false;
}

// In some runs many jobs are longer and save their work.
void make_savers(uint64_t seed, uint64_t number, std::vector<TaskSpec>& tasks) {
  if (!Random(seed, "checkpoints").chance(0.4)) return;
  Random random(seed, fmt::format("checkpoints {}", number));
  for (auto& task : tasks) {
    if (random.chance(0.3)) continue;
    task.argv[1] = std::to_string(random.between(500, 8'000));
    set_argument(task.argv, kSavesEvery, random.between(100, 2'000));
    if (task.is_gang()) task.gang.max_restarts = static_cast<uint32_t>(random.between(0, 3));
    if (task.is_gang() && random.chance(0.2)) task.argv[2] = "3";
    estimate(seed, task);
  }
}

// That is final, for it says what can be had instead.
bool is_no_promise(const Error& error) {
  return error.code == ErrorCode::kExhausted &&
         error.message.find("a promise of") != std::string::npos;
}

}  // namespace

std::vector<TaskSpec> make_job(uint64_t seed, uint64_t number, const Kinds& included) {
  Random random(seed, fmt::format("job {}", number));
  const bool writes = included.contains("writes");
  const uint64_t datasets = random.chance(0.05) ? kDatasets : datasets_of(seed);
  std::vector<TaskSpec> tasks(static_cast<size_t>(random.between(1, 4)));
  for (size_t i = 0; i < tasks.size(); ++i) {
    auto& task = tasks[i];
    task.name = fmt::format("j{}t{}", number, i);
    const int64_t ms = random.chance(0.2) ? random.between(500, 6'000) : random.between(5, 500);
    task.argv = {"work", std::to_string(ms), random.chance(0.06) ? "3" : "0"};
    for (uint64_t dataset = 0; dataset < datasets; ++dataset) {
      const bool read = random.chance(0.25), write = random.chance(0.25);
      if (read || (write && writes))
        task.datasets.push_back({dataset_name(dataset), write && writes});
    }
    for (size_t before = 0; before < i; ++before)
      if (random.chance(0.25)) task.after.push_back(tasks[before].name);
  }
  if (included.contains("gangs")) make_gang(seed, number, tasks);
  make_shares(seed, number, included, tasks);
  if (included.contains("checkpoints")) make_savers(seed, number, tasks);
  make_swappers(seed, number, included, tasks);
  return tasks;
}

void Client::ask(const std::string& request, std::function<void(Core&, Answer)> call,
                 bool gives_up) {
  open_[request] = true;
  send(request, call, gives_up ? kTries : -1);
}

void Client::send(const std::string& request, const std::function<void(Core&, Answer)>& call,
                  int left) {
  if (!open_.contains(request)) return;
  if (left == 0) {
    open_.erase(request);
    return;
  }
  const bool twice = random_.chance(0.1);
  for (int i = 0; i < 1 + twice; ++i)
    at_.loop.after(random_.between(kMs / 10, 5 * kMs), at_.coordinator.life(), [=, this] {
      if (!at_.coordinator.up()) return;
      call(at_.coordinator.core(), [=, this, lost = random_.chance(0.05)](bool over) {
        if (!over || lost) return;
        at_.loop.after(random_.between(kMs / 10, 5 * kMs), nullptr,
                       [this, request] { open_.erase(request); });
      });
      at_.coordinator.touched();
    });
  at_.loop.after(kPatienceNs, nullptr, [=, this] { send(request, call, left - 1); });
}

void Client::submit(uint64_t number, std::vector<TaskSpec> tasks) {
  const auto request = fmt::format("submit {}", number);
  ask(
      request,
      [this, request, tasks = std::move(tasks), before = at_.judge.seen(),
       asked_ns = at_.loop.now_ns()](Core& core, Answer answer) {
        const bool too_much = std::ranges::any_of(tasks, at_.asks_too_much);
        if (!too_much) may_be_taken_.insert(request);
        core.intake.submit({"tester", request}, tasks, [=, this](Result<SubmitReceipt> receipt) {
          check_room(request, tasks, too_much, receipt);
          told(request, tasks, {before, asked_ns}, receipt);
          const bool refused = !receipt && (receipt.error().code == ErrorCode::kInvalid ||
                                            receipt.error().code == ErrorCode::kNotFound ||
                                            is_no_promise(receipt.error()));
          if (refused) at_.judge.refused(request, receipt.error());
          answer(receipt || refused);
        });
      },
      false);
}

void Client::check_room(const std::string& request, const std::vector<TaskSpec>& tasks,
                        bool too_much, const Result<SubmitReceipt>& receipt) {
  if (receipt && too_much && !may_be_taken_.contains(request))
    at_.judge.violated("unfit-room",
                       fmt::format("request '{}' is taken, and asks for more room for swapping "
                                   "than any node offers",
                                   request));
  const bool is_refused_for_room =
      !receipt && receipt.error().code == ErrorCode::kInvalid &&
      receipt.error().message.find("of room for swapping") != std::string::npos;
  if (is_refused_for_room && std::ranges::all_of(tasks, at_.asks_little))
    at_.judge.violated("unfit-room", fmt::format("request '{}' is refused, and there is room: {}",
                                                 request, receipt.error().message));
}

void Client::ask_for_all(const std::vector<SharedUnits>& by_node,
                         const std::vector<uint64_t>& swap_bytes_by_node) {
  std::vector<TaskSpec> tasks;
  for (size_t node = 0; node < by_node.size(); ++node)
    for (const auto& unit : by_node[node]) {
      auto& task = tasks.emplace_back();
      task.name = fmt::format("all{}", tasks.size());
      task.argv = {"work", "100", "0"};
      task.node = fmt::format("n{}", node + 1);
      task.memory_bytes = unit.memory_bytes;
      task.share = {.wanted = true, .engine = unit.engine(), .milli = 1000};
    }
  for (size_t node = 0; node < swap_bytes_by_node.size(); ++node) {
    if (swap_bytes_by_node[node] == 0) continue;
    auto& task = tasks.emplace_back();
    task.name = fmt::format("all{}", tasks.size());
    task.argv = {"work", "100", "0"};
    task.node = fmt::format("n{}", node + 1);
    task.swap_room_bytes = swap_bytes_by_node[node];
  }
  submit(kJobs, std::move(tasks));
}

void Client::told(const std::string& request, const std::vector<TaskSpec>& tasks,
                  const Before& before, const Result<SubmitReceipt>& receipt) {
  if (!receipt) {
    if (receipt.error().code == ErrorCode::kIo) return;  // its disk cannot be asked now
    if (receipts_.contains(request) || receipt.error().code == ErrorCode::kConflict)
      at_.judge.violated("lost-submit", fmt::format("request '{}' was acknowledged, and is now: {}",
                                                    request, receipt.error().message));
    return;
  }
  const auto [first, fresh] = receipts_.emplace(request, *receipt);
  if (!fresh && first->second.first_task != receipt->first_task)
    at_.judge.violated("lost-submit",
                       fmt::format("request '{}' was answered with task {}, and now with {}",
                                   request, first->second.first_task, receipt->first_task));
  if (fresh) at_.judge.acknowledged(*receipt, tasks, before.seen, before.asked_ns);
  for (uint64_t i = 0; i < receipt->task_count; ++i)
    at_.coordinator.look_at(receipt->first_task + i);
}

void Client::add_dataset(uint64_t number) {
  const auto name = dataset_name(number);
  const uint64_t source = ++requests_;
  const auto request = fmt::format("add {} {}", name, source);
  ask(
      request,
      [this, request, name, source](Core& core, Answer answer) {
        const uint64_t call = ++calls_;
        additions_[call] = {name, at_.coordinator.life()};
        gone_.erase(name);
        core.datasets.add(
            request, name, ZeroSource{(1 << 20) + source}, "",
            [this, name, call, answer](Result<Dataset> made) {
              additions_.erase(call);
              if (!made) return answer(made.error().code == ErrorCode::kInvalid);
              const auto* content = at_.content(made->home, {name, made->version, made->digest});
              if (content) at_.judge.dataset_added(name, made->version, *content);
              answer(true);
            });
      },
      true);
}

void Client::remove_dataset(uint64_t number) {
  const auto name = dataset_name(number);
  const auto request = fmt::format("remove {} {}", name, ++requests_);
  const bool insists = random_.chance(0.5);
  ask(
      request,
      [this, name, insists](Core& core, Answer answer) {
        // Writes whose end is on disk were before it, told or not.
        at_.coordinator.look_at_all();
        at_.judge.removal_began(name);
        core.datasets.remove(name, [this, name, insists, answer](Status status) {
          const bool gone = status || status.error().code == ErrorCode::kNotFound;
          // Who was told that it failed may count on the dataset.
          if (gone || !insists || status.error().code == ErrorCode::kConflict) {
            at_.judge.removal_ended(name, gone);
            if (gone) note_gone(name);
            return answer(true);
          }
          answer(false);
        });
      },
      true);
}

void Client::remove_checkpoints() {
  if (!at_.coordinator.up()) return;
  std::vector<CheckpointName> left;
  for (const auto& [dataset, entry] : at_.coordinator.core().state.catalog.all())
    if (const auto name = parse_checkpoint_name(dataset); name && at_.judge.has_ended(name->task))
      left.push_back(*name);
  for (const auto& name : left)
    ask(
        fmt::format("remove {} {}", to_string(name), ++requests_),
        [this, name](Core& core, Answer answer) {
          core.datasets.remove(to_string(name), [this, name, answer](Status status) {
            if (status) at_.judge.saved_work().removed(name);
            answer(status || status.error().code == ErrorCode::kNotFound ||
                   status.error().code == ErrorCode::kConflict);
          });
        },
        true);
}

void Client::look_at_datasets() {
  if (!at_.coordinator.up()) return;
  const auto& catalog = at_.coordinator.core().state.catalog;
  for (uint64_t number = 0; number < kDatasets; ++number)
    if (const auto name = dataset_name(number); at_.judge.newest(name) && !catalog.told(name))
      note_gone(name);
}

void Client::note_gone(const std::string& dataset) {
  std::erase_if(additions_, [](const auto& addition) { return !addition.second.asked->alive; });
  const bool may_come =
      std::any_of(additions_.begin(), additions_.end(),
                  [&](const auto& addition) { return addition.second.dataset == dataset; });
  if (!may_come) gone_.insert(dataset);
}

void Client::cancel(uint64_t task) {
  at_.judge.cancel_asked(task);
  at_.loop.after(random_.between(kMs / 10, 5 * kMs), at_.coordinator.life(), [this, task] {
    if (!at_.coordinator.up()) return;
    auto& core = at_.coordinator.core();
    if (const auto* rank = core.state.tasks.find(task); rank && rank->rank)
      at_.judge.cancel_asked(rank->rank->gang);
    core.lifecycle.cancel(task, nullptr);
    at_.coordinator.touched();
  });
}

void Client::cancel_users_of_lost() {
  for (const auto& [id, spec] : at_.judge.tasks())
    for (const auto& use : spec.datasets)
      if (at_.judge.is_lost(use.dataset) && !at_.judge.has_ended(id)) cancel(id);
}

void Client::cancel_those(const std::function<bool(const TaskSpec&)>& never_fits) {
  for (const auto& [id, spec] : at_.judge.tasks())
    if (never_fits(spec) && !at_.judge.has_ended(id)) cancel(id);
}

void Client::check_datasets(bool repair) {
  at_.loop.after(random_.between(kMs / 10, 5 * kMs), at_.coordinator.life(), [this, repair] {
    if (!at_.coordinator.up()) return;
    auto& core = at_.coordinator.core();
    for (uint64_t number = 0; number < kDatasets; ++number) {
      if (repair) core.replicator.hurry(dataset_name(number));
      core.checker.check(dataset_name(number), repair, [](const auto&) {});
    }
    at_.coordinator.touched();
  });
}

}  // namespace tierpilot::dst
