// Elastic tasks on a real daemon: cores move to the job whose loss they lower, a share is held, and
// other tasks get their units at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

constexpr int kUnits = 8;

// A job of 10 ms of CPU time an iteration, until the file `gate` is there; it writes down what it
// was told. Only the Python module that a user would use.
constexpr const char* kJob = R"(
import os, sys, time, tierpilot
gate, kind = sys.argv[1], sys.argv[2]
job = tierpilot.job()
i, told = 0, []
while not os.path.exists(gate) and not job.should_stop():
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass
    i += 1
    if kind == "falling":
        job.report(iteration=i, loss=1000 / (i + 100))
    elif kind == "flat":
        job.report(iteration=i, loss=2 + 1 / i if i < 4 else 2 + 0.001 / i)
    elif kind == "rising":
        job.report(iteration=i, loss=2, accuracy=i / (i + 100))
    elif kind == "risen":
        job.report(iteration=i, loss=1000 / (i + 100), accuracy=0.5 if i < 4 else 0.9)
    cores = job.cores()
    if cores is not None and (not told or told[-1] != cores):
        told.append(cores)
        print(f"cores {cores:.3f}", flush=True)
)";

class Elastic : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 1, .units = kUnits, .sharing_period_s = 1});
    script_ = cluster_->folder() / "job.py";
    std::ofstream(script_) << kJob;
    gate_ = cluster_->folder() / "gate";
  }
  void open_gate() { std::ofstream(gate_) << "open"; }
  uint64_t submit(const std::vector<std::string>& options,
                  const std::vector<std::string>& command) {
    std::vector<std::string> line{"-j", "task", "submit", "--env", python_path()};
    line.insert(line.end(), options.begin(), options.end());
    line.push_back("--");
    line.insert(line.end(), command.begin(), command.end());
    return submitted_id(tierctl_at(cluster_->address(), line));
  }
  uint64_t submit_job(const std::string& range, const std::string& kind) {
    return submit({"--elastic", range, "--name", kind},
                  {"/usr/bin/python3", script_.string(), gate_.string(), kind});
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  double units(uint64_t id) {
    const auto share = shown(id)["share"];
    return share.is_object() ? share["units"].get<double>() : 0;
  }
  Json ended(uint64_t id) {
    const auto task = cluster_->client().wait(id);
    EXPECT_TRUE(task) << task.error().message;
    if (!task) return {};
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2) << cluster_->logs();
    return *task;
  }
  static double cpu_s(const Json& task) {
    return (task["exit"]["cpu_user_ns"].get<double>() +
            task["exit"]["cpu_system_ns"].get<double>()) /
           1e9;
  }

  std::unique_ptr<Cluster> cluster_;
  std::filesystem::path script_, gate_;
};

TEST_F(Elastic, CoresGoToTheJobWhoseLossTheyLower) {
  const auto falling = submit_job("1:8", "falling");
  const auto flat = submit_job("1:8", "flat");
  // At their start one has more than the other for no reason but that it came first.
  const auto foretold = [&](uint64_t id) {
    const auto share = shown(id)["share"];
    return share.is_object() && share["gain"].is_number();
  };
  ASSERT_TRUE(eventually(
      [&] { return foretold(falling) && foretold(flat) && units(falling) > 1.5 * units(flat); },
      std::chrono::seconds(120)))
      << shown(falling).dump(2) << shown(flat).dump(2);
  EXPECT_LE(units(falling) + units(flat), kUnits + 0.01);
  const auto why = tierctl_at(cluster_->address(), {"task", "explain", std::to_string(flat)});
  EXPECT_EQ(why.code, 0) << why.err;
  for (const auto* word : {"falling", "OF ONE MORE", "quality"})
    EXPECT_NE(why.out.find(word), std::string::npos) << word << " is not in\n" << why.out;
  open_gate();
  ended(flat);
  ended(falling);
  // It was told through its channel, more than once.
  const auto log = cluster_->client().log(falling);
  ASSERT_TRUE(log);
  EXPECT_GE(std::count(log->begin(), log->end(), '\n'), 2) << *log;
}

TEST_F(Elastic, CoresGoToTheJobWhoseMeasureTheyRaise) {
  const auto with_measure = [&](const std::string& kind) {
    return submit({"--elastic", "1:8", "--name", kind, "--measure", "accuracy:up"},
                  {"/usr/bin/python3", script_.string(), gate_.string(), kind});
  };
  const auto rising = with_measure("rising"), risen = with_measure("risen");
  ASSERT_TRUE(eventually([&] { return units(risen) > 0 && units(rising) > 1.5 * units(risen); },
                         std::chrono::seconds(120)))
      << shown(rising).dump(2) << shown(risen).dump(2);
  const auto shown_to_people =
      tierctl_at(cluster_->address(), {"task", "show", std::to_string(rising)});
  EXPECT_NE(shown_to_people.out.find("accuracy"), std::string::npos) << shown_to_people.out;
  open_gate();
  ended(rising);
  ended(risen);
}

TEST_F(Elastic, AJobThatSaysNothingHasItsEqualShareAndIsTold) {
  const auto silent = submit_job("1:8", "silent");
  const auto other = submit_job("1:8", "silent");
  ASSERT_TRUE(eventually([&] { return units(silent) > 3.9 && units(other) > 3.9; }))
      << shown(silent).dump(2);
  const auto shown_to_people =
      tierctl_at(cluster_->address(), {"task", "show", std::to_string(silent)});
  EXPECT_NE(shown_to_people.out.find("it has reported nothing: its equal share"), std::string::npos)
      << shown_to_people.out;
  open_gate();
  ended(silent);
  ended(other);
}

TEST_F(Elastic, AShareIsHeld) {
  // An eighth of the CPUs, for a program that would use all of one.
  const auto id =
      submit({"--elastic", "1:1"}, {"/bin/sh", "-c",
                                    "end=$(($(date +%s) + 8)); while [ $(date +%s) -lt $end "
                                    "]; do :; done"});
  const auto task = ended(id);
  const double wall_s = task["exit"]["wall_ns"].get<double>() / 1e9;
  const auto cpus = cluster_->client().nodes();
  ASSERT_TRUE(cpus);
  const double share = static_cast<double>(std::thread::hardware_concurrency()) / kUnits;
  ASSERT_LT(share, 1) << "this machine has as many CPUs as the test's node has units";
  // Half a second to begin with, in which it is not watched yet.
  EXPECT_LE(cpu_s(task), 1.15 * share * wall_s + 0.5) << task.dump(2);
}

TEST_F(Elastic, OtherTasksGetTheirUnitsAtOnce) {
  const auto elastic = submit_job("1:8", "silent");
  ASSERT_TRUE(eventually([&] { return units(elastic) > 7.9; })) << shown(elastic).dump(2);
  const auto rigid = submit(
      {"--units", "6"},
      {"/bin/sh", "-c", fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate_.string())});
  ASSERT_TRUE(eventually([&] { return shown(rigid)["state"] == "running"; }));
  ASSERT_TRUE(eventually([&] { return units(elastic) < 2.01; })) << shown(elastic).dump(2);
  open_gate();
  ended(rigid);
  ended(elastic);
}

TEST_F(Elastic, WhatCannotBeIsRefused) {
  for (const auto* wrong : {"4:2", "0:2", "x", ":"})
    EXPECT_NE(
        tierctl_at(cluster_->address(), {"task", "submit", "--elastic", wrong, "--", "/bin/true"})
            .code,
        0)
        << wrong;
  const auto ranks = tierctl_at(
      cluster_->address(),
      {"task", "submit", "--elastic", "1:2", "--ranks", "2", "--engine", "gpu", "--", "/bin/true"});
  EXPECT_NE(ranks.code, 0);
  EXPECT_NE(ranks.err.find("ranks"), std::string::npos) << ranks.err;
}

}  // namespace
}  // namespace tierpilot::test
