// Tasks that share a unit of a real daemon: parts are held, promises made or refused, and who gives
// way goes on from its checkpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

// A job of 10 ms of CPU time an iteration. Without a number of iterations it goes on until the file
// `gate` is there. With iterations it saves each twentieth: who saves waits for its node, and needs
// less of its unit. Only the Python module that a user would use.
constexpr const char* kSharedJob = R"(
import os, sys, time, tierpilot
gate, iterations = sys.argv[1], int(sys.argv[2])
every = int(os.environ.get("SAVE_EVERY", 20))  # 0: when asked to
job = tierpilot.job()
i = job.restored_iteration
print("from", i, flush=True)
while not job.should_stop() and (i < iterations if iterations else not os.path.exists(gate)):
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass
    i += 1
    job.report(iteration=i, iterations=iterations)
    if iterations and (every and i % every == 0 or job.should_checkpoint()):
        with open("state", "w") as file:
            file.write(str(i))
        job.checkpoint("state", i)
)";

class ShareTest : public testing::Test {
 protected:
  void start(const std::string& policy) {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    ClusterOptions options{
        .nodes = 1,
        .lease_ms = 4000,
        .coordinator_more = fmt::format("[sharing]\npolicy = \"{}\"\nperiod_s = 1\n", policy),
        .node_more = "[sharing]\ncpus = \"0\"\n"};
    options.prefix = [this](int process) { return process < 0 ? coordinator_prefix_ : Argv{}; };
    cluster_ = std::make_unique<Cluster>(std::move(options));
    script_ = cluster_->folder() / "job.py";
    std::ofstream(script_) << kSharedJob;
    gate_ = cluster_->folder() / "gate";
  }
  void open_gate() { std::ofstream(gate_) << "open"; }
  Outcome submit(const std::vector<std::string>& options, int iterations) {
    std::vector<std::string> line{"-j", "task", "submit", "--env", python_path()};
    line.insert(line.end(), options.begin(), options.end());
    for (const auto& word : {std::string("--"), std::string("/usr/bin/python3"), script_.string(),
                             gate_.string(), std::to_string(iterations)})
      line.push_back(word);
    return tierctl_at(cluster_->address(), line);
  }
  uint64_t accepted(const std::vector<std::string>& options, int iterations = 0) {
    return submitted_id(submit(options, iterations));
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  int milli(uint64_t id) {
    const auto share = shown(id)["unit_share"];
    return share.is_object() ? share["milli"].get<int>() : 0;
  }
  bool runs(uint64_t id) { return shown(id)["state"] == "running"; }
  Json ended(uint64_t id) {
    const auto task = cluster_->client().wait(id);
    EXPECT_TRUE(task) << task.error().message;
    if (!task) return {};
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2) << cluster_->logs();
    return shown(id);
  }
  std::string log(uint64_t id) {
    return tierctl_at(cluster_->address(), {"task", "logs", std::to_string(id)}).out;
  }
  static double cpu_s(const Json& task) {
    return (task["exit"]["cpu_user_ns"].get<double>() +
            task["exit"]["cpu_system_ns"].get<double>()) /
           1e9;
  }

  std::unique_ptr<Cluster> cluster_;
  std::filesystem::path script_, gate_;
  Argv coordinator_prefix_;
};

TEST_F(ShareTest, PartsOfAUnitAreHeld) {
  start("best-fit");
  if (!cluster_) return;
  const auto small = accepted({"--share", "200", "--name", "small"});
  const auto large = accepted({"--share", "600", "--name", "large"});
  const auto none_left = accepted({"--share", "300", "--name", "third"}, 5);
  ASSERT_TRUE(eventually([&] { return runs(small) && runs(large); })) << cluster_->logs();
  EXPECT_EQ(shown(none_left)["state"], "queued");
  std::this_thread::sleep_for(std::chrono::seconds(6));
  open_gate();
  const auto one = ended(small), other = ended(large);
  const auto part = [](const Json& task) {
    return cpu_s(task) / (task["exit"]["wall_ns"].get<double>() / 1e9);
  };
  // Loaded machines give less, never more; the start of Python is before the part is held.
  EXPECT_LE(part(one), 0.25);
  EXPECT_LE(part(other), 0.65);
  EXPECT_GT(part(other), part(one));
  ended(none_left);
}

TEST_F(ShareTest, PromisesAreMadeKeptAndRefused) {
  start("share");
  if (!cluster_) return;
  const auto best_effort = accepted({"--share", "auto", "--name", "any"});
  ASSERT_TRUE(eventually([&] { return runs(best_effort); })) << cluster_->logs();
  const auto refused =
      submit({"--share", "auto", "--name", "late", "--estimate", "100s", "--promise", "60s"}, 100);
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("ask for"), std::string::npos) << refused.err << refused.out;
  const auto nowhere = submit({"--share", "100", "--engine", "gpu", "--promise", "10m"}, 100);
  EXPECT_NE(nowhere.code, 0);
  EXPECT_NE(nowhere.err.find("none is up"), std::string::npos) << nowhere.err << nowhere.out;
  // Three seconds of work and a long time for it: a part of the unit is enough.
  const auto promised =
      accepted({"--share", "auto", "--name", "soon", "--estimate", "5s", "--promise", "80s"}, 300);
  const auto task = ended(promised);
  EXPECT_LE(task["finished_ms"].get<double>() - task["submitted_ms"].get<double>(), 80'000);
  EXPECT_EQ(shown(best_effort)["state"], "running") << "it had to shrink, and no more";
  EXPECT_EQ(task["unit_share"]["predicted_by"], "its user");
  EXPECT_TRUE(task["unit_share"]["promise"].get<std::string>().starts_with("kept: done after "))
      << task["unit_share"];
  EXPECT_GT(task["unit_share"]["promise_left_s"].get<double>(), 0);
  EXPECT_GT(task["unit_share"]["used_milli"].get<double>(), 0);
  ASSERT_TRUE(eventually([&] { return milli(best_effort) > 700; })) << shown(best_effort).dump(2);
  open_gate();
  ended(best_effort);
}

// The same name comes twice: the second time its neighbour has shown what it keeps beside it.
// Nobody heard of its end for longer than it was promised to take, nor does the daemon that saw it
// live on.
TEST_F(ShareTest, APromiseThatWasKeptWhileNobodyListenedIsKept) {
  start("share");
  if (!cluster_) return;
  constexpr int kPromise_s = 15;
  const auto id = accepted({"--share", "400", "--name", "heard late", "--estimate", "3s",
                            "--promise", fmt::format("{}s", kPromise_s)});
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(kPromise_s + 1);
  ASSERT_TRUE(eventually([&] { return runs(id); })) << cluster_->logs();
  cluster_->coordinator().kill_now();
  open_gate();
  std::this_thread::sleep_for(std::chrono::seconds(3));  // within its lease
  cluster_->node(0).kill_now();
  std::this_thread::sleep_until(due);
  cluster_->start_node(0);
  cluster_->start_coordinator();
  const auto task = ended(id);
  EXPECT_TRUE(task["unit_share"]["promise"].get<std::string>().starts_with("kept: done after "))
      << task["unit_share"];
  EXPECT_LE(task["started_ms"].get<double>(), task["finished_ms"].get<double>());
}

TEST_F(ShareTest, AClockThatIsSetWhileTheCoordinatorIsDownChangesNoPromise) {
  const char* library = std::getenv("TIERPILOT_TEST_WALL_CLOCK");
  if (!library) GTEST_SKIP() << "the sanitizer has to be the first library";
  const TempFolder folder("/tmp");
  const auto ahead = folder.path() / "ahead_s";
  const auto set_clock = [&](int64_t ahead_s) {
    std::fstream(ahead, std::ios::binary | std::ios::in | std::ios::out)
        .write(reinterpret_cast<const char*>(&ahead_s), sizeof ahead_s);
  };
  std::ofstream(ahead) << std::string(sizeof(int64_t), '\0');
  coordinator_prefix_ = {"/usr/bin/env", std::string("LD_PRELOAD=") + library,
                         "TIERPILOT_TEST_CLOCK=" + ahead.string()};
  start("share");
  if (!cluster_) return;
  for (const int64_t ahead_s : {7200, -3600}) {
    const auto id = accepted({"--share", "400", "--name", std::to_string(ahead_s), "--estimate",
                              "3s", "--promise", "100s"});
    ASSERT_TRUE(eventually([&] { return runs(id); })) << cluster_->logs();
    cluster_->coordinator().kill_now();
    set_clock(ahead_s);
    cluster_->start_coordinator();
    const auto left_s = shown(id)["unit_share"]["promise_left_s"].get<double>();
    EXPECT_GT(left_s, 0);
    EXPECT_LT(left_s, 100);
    open_gate();
    const auto promise = ended(id)["unit_share"]["promise"].get<std::string>();
    EXPECT_TRUE(promise.starts_with("kept: done after ")) << promise;
    EXPECT_NE(promise.find(" s of 100"), std::string::npos) << promise;
    std::filesystem::remove(gate_);
  }
}

// Its user says a minute, which may be half more: too uncertain for a promise of 70 s. One takes
// some seconds, the other three minutes.
TEST_F(ShareTest, PromisesOnTrialAreDecidedByThePaceOfTheirJobs) {
  start("share");
  if (!cluster_) return;
  const auto asked = [](const std::string& name) {  // runs of a name would tell of the next one
    return std::vector<std::string>{"--name",     name,  "--share",   "auto",
                                    "--estimate", "60s", "--promise", "70s"};
  };
  const auto on_trial = [&](const std::string& name) {
    auto options = asked(name);
    options.emplace_back("--promise-on-trial");
    return options;
  };
  EXPECT_NE(submit(asked("quick"), 900).err.find("on trial"), std::string::npos);
  const auto promise = [&](uint64_t id) {
    return shown(id)["unit_share"].value("promise", std::string());
  };
  const auto quick = accepted(on_trial("quick"), 900);
  EXPECT_EQ(promise(quick), "on trial");
  EXPECT_TRUE(eventually([&] { return promise(quick) == "made on trial"; })) << shown(quick);
  ended(quick);
  const auto slow = accepted(on_trial("slow"), 18000);
  EXPECT_TRUE(eventually([&] { return promise(slow).starts_with("not made"); })) << shown(slow);
  EXPECT_TRUE(runs(slow)) << "it goes on without";
  tierctl_at(cluster_->address(), {"task", "cancel", std::to_string(slow)});
}

TEST_F(ShareTest, WhatNeighboursTakeIsLearnedFromPaces) {
  start("share");
  if (!cluster_) return;
  const auto goes_on = accepted({"--share", "auto", "--name", "any"});
  ASSERT_TRUE(eventually([&] { return runs(goes_on); })) << cluster_->logs();
  std::this_thread::sleep_for(std::chrono::seconds(10));
  const std::vector<std::string> options{"--share",    "auto", "--name",    "soon",
                                         "--estimate", "5s",   "--promise", "60s"};
  const auto beside = [&] {
    const auto share = shown(goes_on)["unit_share"];
    return share.is_object() && !share["slow_downs"].empty() ? share["slow_downs"][0] : Json();
  };
  const auto first = accepted(options, 300);
  ASSERT_TRUE(eventually([&] { return beside().is_object(); })) << cluster_->logs();
  const auto before = beside();
  EXPECT_EQ(before["task"], first);
  EXPECT_EQ(before["by"].get<std::string>().find("this pair"), std::string::npos) << before;
  EXPECT_LT(before["keeps_at_least"].get<double>(), before["keeps"].get<double>());
  ended(first);
  accepted(options, 300);
  ASSERT_TRUE(eventually([&] { return beside().is_object(); })) << cluster_->logs();
  const auto learned = beside();
  EXPECT_NE(learned["by"].get<std::string>().find("this pair of names"), std::string::npos)
      << learned;
  EXPECT_GT(learned["keeps_at_least"].get<double>(), before["keeps_at_least"].get<double>())
      << "it is more certain, and iterations by CPU time are hardly fewer";
  open_gate();
  ended(goes_on);
}

TEST_F(ShareTest, WhoGivesWayGoesOnFromItsCheckpoint) {
  start("share-published");
  if (!cluster_) return;
  const auto best_effort = accepted({"--share", "800", "--name", "any"}, 400);
  ASSERT_TRUE(eventually([&] {
    const auto task = shown(best_effort);
    return !task["checkpoints"].empty();
  })) << cluster_->logs();
  const auto sensitive =
      accepted({"--share", "900", "--class", "latency-sensitive", "--name", "now"}, 50);
  ended(sensitive);
  const auto task = ended(best_effort);
  EXPECT_EQ(task["attempt"], 2) << "it does not count as a failure of its own";
  EXPECT_EQ(task["unit_share"]["preemptions"], 1);
  EXPECT_NE(log(best_effort).find("from "), std::string::npos);
  EXPECT_EQ(log(best_effort).find("from 0\n"), std::string::npos) << log(best_effort);
}

TEST_F(ShareTest, WhoOnlySavesWhenAskedLosesNothing) {
  start("share-published");
  if (!cluster_) return;
  const auto best_effort =
      accepted({"--share", "800", "--env", "SAVE_EVERY=0", "--name", "any"}, 400);
  ASSERT_TRUE(eventually([&] {
    const auto task = shown(best_effort);
    return !task["progress"].empty() && task["progress"].back()["iteration"] > 100;
  })) << cluster_->logs();
  const auto sensitive =
      accepted({"--share", "900", "--class", "latency-sensitive", "--name", "now"}, 50);
  ended(sensitive);
  const auto task = ended(best_effort);
  EXPECT_EQ(task["unit_share"]["preemptions"], 1);
  EXPECT_EQ(log(best_effort).find("from 0\n"), std::string::npos) << log(best_effort);
}

TEST_F(ShareTest, SharesOutliveACoordinator) {
  start("best-fit");
  if (!cluster_) return;
  const auto first = accepted({"--share", "700", "--name", "first"});
  ASSERT_TRUE(eventually([&] { return runs(first); })) << cluster_->logs();
  cluster_->coordinator().kill_now();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return runs(first) && milli(first) == 700; })) << cluster_->logs();
  const auto second = accepted({"--share", "400", "--name", "second"}, 5);
  EXPECT_FALSE(eventually([&] { return runs(second); }, std::chrono::seconds(2)));
  open_gate();
  ended(first);
  ended(second);
}

}  // namespace
}  // namespace tierpilot::test
