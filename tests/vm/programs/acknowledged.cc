// Work in a guest whose power is cut at any moment: says what the coordinator has acknowledged, a
// line each, and holds it after the next boot to what it had said before.
//
//   vm_acknowledged ADDRESS BOOT     told by lines on its input, up to "go"; BOOT "last": no more
//   work
//
//   submitted REQUEST TASK           the request was answered with this task
//   ended TASK STATE
//   wrote TASK                       it has succeeded in writing its id into the dataset
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/system/client.h"

namespace tierpilot::test {
namespace {

constexpr int kAtOnce = 4;
constexpr const char* kDataset = "d";
constexpr uint64_t kDatasetBytes = 64 << 10;
constexpr int64_t kPatienceMs = 120'000;

// Whatever runs, and each time, the host hears of.
TaskPlan noisy_task(const std::string& work) {
  return shell_task("echo run $TIERPILOT_TASK_ID $TIERPILOT_ATTEMPT >/heard; " + work);
}

TaskPlan writer() {
  auto task =
      noisy_task("echo $TIERPILOT_TASK_ID | dd conv=notrunc of=$TIERPILOT_DATASET_D 2>/dev/null");
  task.datasets = {{kDataset, true}};
  return task;
}

// One write(2) each, so that lines of tasks do not mix with it.
void say(const std::string& line) {
  std::cout << line + "\n" << std::flush;
}

class Known {
 public:
  void hear(const std::string& line) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what >> first >> second;
    if (what == "submitted") submitted_[first] = std::stoull(second);
    if (what == "ended") ended_[std::stoull(first)] = second;
    if (what == "wrote") last_writer_ = std::stoull(first);
  }
  // Says what does not hold; the number of promises that were looked at.
  size_t check(Client& client) {
    for (const auto& [request, task] : submitted_) {
      const auto again = client.submit({plan_of(request)}, request);
      if (!again || again->tasks != std::vector<uint64_t>{task})
        say(fmt::format("WRONG: request {} was answered with task {}, and now {}", request, task,
                        again ? std::to_string(again->tasks.at(0)) : again.error().message));
    }
    for (const auto& [task, state] : ended_) {
      const auto now = client.show(task);
      if (!now || (*now)["state"] != state)
        say(fmt::format("WRONG: task {} had {}, and now {}", task, state,
                        now ? (*now)["state"].get<std::string>() : now.error().message));
    }
    if (last_writer_ > 0) check_dataset(client);
    return submitted_.size() + ended_.size() + (last_writer_ > 0);
  }
  static TaskPlan plan_of(const std::string& request) {
    return request.starts_with("w") ? writer() : noisy_task("true");
  }

 private:
  void check_dataset(Client& client) {
    auto reader = shell_task("head -n 1 $TIERPILOT_DATASET_D");
    reader.datasets = {{kDataset, false}};
    const auto submitted = client.submit({reader});
    const auto ended = submitted ? client.wait(submitted->tasks[0], kPatienceMs)
                                 : Result<Json>(tl::unexpected(submitted.error()));
    if (!ended || (*ended)["state"] != "succeeded")
      return say(fmt::format("WRONG: the dataset cannot be read: {}",
                             ended ? ended->dump() : ended.error().message));
    const auto log = client.log(submitted->tasks[0]);
    if (!log || std::strtoull(log->c_str(), nullptr, 10) < last_writer_)
      say(fmt::format("WRONG: task {} had written the dataset, and it says {}", last_writer_,
                      log ? *log : log.error().message));
  }

  std::map<std::string, uint64_t> submitted_;
  std::map<uint64_t, std::string> ended_;
  uint64_t last_writer_ = 0;
};

class Load {
 public:
  Load(Client& client, std::string boot) : client_(client), boot_(std::move(boot)) {}

  void step() {
    if (writer_ == 0) writer_ = submit("w");
    if (running_.size() < kAtOnce) {
      std::vector<Request> requests;
      for (int i = 0; i < kAtOnce; ++i) requests.push_back(next("r"));
      const auto answers = client_.submit_burst(requests, 0, [] {});
      for (size_t i = 0; i < answers.size(); ++i)
        if (answers[i]) running_[acknowledged(requests[i], *answers[i])] = "r";
    }
    look();
  }

 private:
  Request next(const std::string& kind) {
    const auto id = fmt::format("{}{}.{}", kind, boot_, ++made_);
    return {id, {Known::plan_of(id)}};
  }
  uint64_t acknowledged(const Request& request, const Submitted& answer) {
    say(fmt::format("submitted {} {}", request.id, answer.tasks.at(0)));
    return answer.tasks[0];
  }
  uint64_t submit(const std::string& kind) {
    const auto request = next(kind);
    const auto answer = client_.submit(request.tasks, request.id);
    if (!answer) throw std::runtime_error(answer.error().message);
    const uint64_t task = acknowledged(request, *answer);
    running_[task] = kind;
    return task;
  }
  void look() {
    for (auto it = running_.begin(); it != running_.end();) {
      const auto task = client_.show(it->first);
      if (!task || !has_ended(*task)) {
        ++it;
        continue;
      }
      const auto state = (*task)["state"].get<std::string>();
      say(fmt::format("ended {} {}", it->first, state));
      if (it->second == "w") {
        if (state == "succeeded") say(fmt::format("wrote {}", it->first));
        writer_ = 0;
      }
      it = running_.erase(it);
    }
  }

  Client& client_;
  const std::string boot_;
  std::map<uint64_t, std::string> running_;  // task: kind
  uint64_t writer_ = 0;
  int made_ = 0;
};

// As soon as a node is there that takes it.
void add_dataset(Client& client) {
  auto added = client.add_dataset_zeros(kDataset, kDatasetBytes);
  for (int i = 0; !added && i < 600; ++i, added = client.add_dataset_zeros(kDataset, kDatasetBytes))
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (!added) throw std::runtime_error(added.error().message);
}

int run(const std::string& address, const std::string& boot) {
  Known known;
  for (std::string line; std::getline(std::cin, line) && line != "go";) known.hear(line);
  Client client(address);
  auto connected = client.connect();
  for (int i = 0; !connected && i < 600; ++i, connected = client.connect())
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (!connected) throw std::runtime_error(connected.error().message);
  if (boot == "1") add_dataset(client);
  say(fmt::format("checked {}", known.check(client)));
  if (boot == "last") return 0;
  for (Load load(client, boot);; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
    load.step();
}

}  // namespace
}  // namespace tierpilot::test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return tierpilot::test::run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    tierpilot::test::say(fmt::format("WRONG: {}", e.what()));
    return 1;
  }
}
