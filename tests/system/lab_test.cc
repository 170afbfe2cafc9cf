// What tierctl does with policies without a coordinator: simulate, policy evaluate, policy train.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

using ::testing::HasSubstr;

TEST(Lab, EvaluateNeedsNoCoordinatorAndTellsAllOfItsRows) {
  const auto outcome = tierctl_at("unix:/nowhere/c.sock",
                                  {"policy", "evaluate", "--suite", "quick", "--seeds", "2", "-j"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out);
  EXPECT_EQ(value["schema"], 1);
  const size_t cells = value["cells"].size();
  ASSERT_GT(cells, 0u);
  EXPECT_EQ(value["runs"].size(), cells * 2 * value["policies"].size());
  for (const auto& run : value["runs"]) {
    for (const char* key :
         {"workload", "nodes", "policy", "seed", "wait_mean_s", "wait_p99_s", "response_mean_s",
          "response_p99_s", "utilisation", "evicted_bytes", "fairness", "response_bound_s"})
      EXPECT_FALSE(run[key].is_null()) << key;
    EXPECT_EQ(run.contains("guard"), run["policy"] == "dqn");
  }
  for (const auto& cell : value["cells"]) {
    EXPECT_EQ(cell["policy"], "dqn");
    EXPECT_NE(cell["best_heuristic"], "dqn");
    EXPECT_TRUE(cell["difference"]["mean"].is_number());
    EXPECT_LE(cell["bound_share"]["mean"], 1.0);
  }
  EXPECT_EQ(value["overall"].size(), 1u);
  const auto unguarded =
      tierctl_at("unix:/nowhere/c.sock", {"policy", "evaluate", "--suite", "quick", "--seeds", "1",
                                          "--policies", "random,dqn", "--no-guard", "-j"});
  ASSERT_EQ(unguarded.code, 0) << unguarded.err;
  const auto alone = parse(unguarded.out);
  for (const auto& run : alone["runs"]) EXPECT_FALSE(run.contains("guard"));
  expect_json_error(
      tierctl_at("unix:/nowhere/c.sock", {"-j", "policy", "evaluate", "--suite", "none"}), 3,
      "quick");
}

TEST(Lab, TrainedWeightsAreTheSameAgainAndCanBeEvaluated) {
  const TempFolder folder("/tmp");
  const auto config = (folder.path() / "small.toml").string();
  std::ofstream(config) << "[training]\nepisodes = 2\ntasks = 50\ntrial_interval = 1\ntrials = 2\n"
                           "[search]\ngenerations = 2\npopulation = 4\nruns = 8\nruns_each = 4\n"
                           "tasks = 50\n";
  std::vector<std::string> made;
  for (const char* name : {"a.weights", "b.weights"}) {
    const auto output = (folder.path() / name).string();
    const auto outcome = tierctl_at(
        "unix:/nowhere/c.sock",
        {"policy", "train", "--config", config, "--output", output, "--suite", "quick", "-j"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(parse(outcome.out)["overall"].empty());
    std::ifstream file(output, std::ios::binary);
    made.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  EXPECT_FALSE(made[0].empty());
  EXPECT_EQ(made[0], made[1]);
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock",
                       {"policy", "evaluate", "--suite", "quick", "--seeds", "1", "--policies",
                        "random,dqn", "--weights", (folder.path() / "a.weights").string()})
                .code,
            0);
}

// Both would run for hours.
TEST(Lab, WhatCannotBeWrittenOrEvaluatedIsSaidBeforeTheRuns) {
  const TempFolder folder("/tmp");
  const auto config = (folder.path() / "long.toml").string();
  std::ofstream(config) << "[training]\nepisodes = 1000000\n";
  const auto trained = tierctl_at("unix:/nowhere/c.sock",
                                  {"policy", "train", "--config", config, "--suite", "none"});
  EXPECT_NE(trained.code, 0);
  EXPECT_NE(trained.err.find("quick"), std::string::npos) << trained.err;
  const auto evaluated = tierctl_at(
      "unix:/nowhere/c.sock",
      {"policy", "evaluate", "--suite", "full", "--seeds", "10000", "--plots", config + "/plots"});
  EXPECT_NE(evaluated.code, 0);
  EXPECT_NE(evaluated.err.find("--plots"), std::string::npos) << evaluated.err;
}

// The path of a new file.
std::string written(const TempFolder& folder, const char* name, const char* text) {
  const auto path = folder.path() / name;
  std::ofstream(path) << text;
  return path.string();
}

TEST(Lab, SimulateNeedsNoCoordinatorAndRepeatsItself) {
  const TempFolder folder("/tmp");
  const auto cluster = written(folder, "cluster.toml", "[[nodes]]\ncount = 4\nunits = 2\n");
  const auto workload = written(folder, "workload.toml", "[workload]\ntasks = 200\n");
  const Argv words{"simulate", "--cluster",           cluster,   "--workload", workload,
                   "--policy", "random,least-loaded", "--seeds", "2"};
  const auto text = tierctl_at("unix:/nowhere/c.sock", words);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("least-loaded"), std::string::npos) << text.out;
  for (const bool first : {true, false}) {
    auto as_json = words;
    as_json.insert(first ? as_json.begin() : as_json.end(), "-j");
    const auto json = tierctl_at("unix:/nowhere/c.sock", as_json);
    EXPECT_EQ(json.code, 0) << json.err;
    EXPECT_EQ(parse(json.out)["policies"].size(), 2u);
    EXPECT_EQ(json.out, tierctl_at("unix:/nowhere/c.sock", as_json).out);
  }
  auto drawn = words;
  const auto plots = std::filesystem::path(cluster).parent_path() / "plots";
  drawn.insert(drawn.end(), {"--plots", plots});
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock", drawn).code, 0);
  for (const char* name : {"queue-length.svg", "utilisation.svg", "responses.svg"})
    EXPECT_GT(file_size(plots / name), 1000u) << name;
  drawn.back() = "/proc/no/such";  // where nothing can be made
  drawn.push_back("-j");
  expect_json_error(tierctl_at("unix:/nowhere/c.sock", drawn), 3, "/proc/no/such");
  expect_json_error(
      tierctl_at("unix:/nowhere/c.sock", {"-j", "simulate", "--workload", "trace:tea:leaves"}), 1,
      "trace:philly");
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock", {"simulate", "--seeds", "none"}).code, 2);
}

// Of two seeds, in seconds.
TEST(Lab, WhatATraceDoesNotTellIsSaid) {
  const TempFolder folder("/tmp");
  const auto cluster =
      written(folder, "cluster.toml", "[[nodes]]\nunits = 8\nfast_budget = \"1TiB\"\n");
  const auto row = [](int number, const char* run_s, int processors) {
    return fmt::format("{0} 0 1 {1} {2} -1 -1 {2} 60 -1 1 1 1 1 1 1 -1 -1\r\n", number, run_s,
                       processors);
  };
  const auto jobs =
      written(folder, "jobs.swf",
              (row(1, "60", 1) + row(2, "x", 1) + row(3, "60", 1) + row(4, "60", 99)).c_str());
  const auto simulate = [&](const std::string& workload, Argv more = {}) {
    Argv words{"simulate", "--cluster", cluster, "--policy", "random", "--workload", workload};
    words.insert(words.end(), more.begin(), more.end());
    return tierctl_at("unix:/nowhere/c.sock", words);
  };
  const auto text = simulate("trace:swf:" + jobs);
  EXPECT_EQ(text.code, 4);
  EXPECT_THAT(text.err, testing::HasSubstr("tasks rejected: 1 (no node has their units"));
  EXPECT_THAT(text.out, testing::HasSubstr("Not in the trace: datasets"));
  EXPECT_THAT(text.out, testing::HasSubstr("Rows left out: 1 of the trace's 4"));

  const auto bare = simulate(jobs);
  EXPECT_EQ(bare.code, 1);
  EXPECT_THAT(bare.err, testing::HasSubstr("trace:swf:FILE"));
  const auto generated = written(folder, "workload.toml", "[workload]\ntasks = 10\n");
  const auto options = written(folder, "options.toml", "[trace]\nrate = 2\n");
  const auto unused = simulate(generated, {"--trace-options", options});
  EXPECT_EQ(unused.code, 1);
  EXPECT_THAT(unused.err, testing::HasSubstr("--trace-options"));

  const auto pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto piped = simulate("trace:swf:" + pipe);  // nobody writes: it would wait for ever
  EXPECT_EQ(piped.code, 1);
  EXPECT_THAT(piped.err, testing::HasSubstr("it is a pipe"));
}

// Rows for both, the worst of all first, and what was left out.
TEST(Lab, JobsOfListsOfPodsAndOfTracesShareUnitsOverTime) {
  const TempFolder folder("/tmp");
  std::string pods =
      "cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time,scheduled_time,deletion_time\n";
  std::string trace = "timestamp,duration,num_gpus\n2017-10-01 00:00:00,60,1\n";
  for (int i = 0; i < 40; ++i) {
    pods += fmt::format("1000,64,{},500,{},{},0,600\n", i % 4 == 0 ? 0 : 1,
                        i % 2 == 0 ? "BE" : "LS", i * 100);
    trace += fmt::format("2017-10-01 00:{:02}:30,900,{}\n", i, i % 8 == 0 ? 2 : 1);
  }
  const auto list = written(folder, "pods.csv", pods.c_str());
  const auto nodes =
      written(folder, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,9,9,8,T4\n");
  const auto jobs = written(folder, "trace.csv", trace.c_str());
  const auto evaluate = [](const Argv& more) {
    Argv words{"-j", "policy", "evaluate", "--suite", "sharing", "--seeds", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return tierctl_at("unix:/nowhere/c.sock", words);
  };
  const auto outcome = evaluate({"--in-time", "--pods", list, "--nodes", nodes, "--trace", jobs,
                                 "--policies", "whole,share", "--load", "0.8"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out)["in_time"];
  ASSERT_EQ(value["policies"].size(), 4u);
  for (size_t i = 1; i < 4; ++i)
    EXPECT_LE(value["policies"][i - 1]["promises_kept_of_made"],
              value["policies"][i]["promises_kept_of_made"]);
  EXPECT_EQ(value["jobs"][0]["simulated"], 30);
  EXPECT_EQ(value["jobs"][0]["skipped"]["it asks for no GPU"], 10);
  EXPECT_EQ(value["jobs"][1]["of_several_units"], 5);
  EXPECT_EQ(value["settings"]["load"], 0.8);
  EXPECT_THAT(evaluate({"--trace", jobs}).err, HasSubstr("--in-time"));
  EXPECT_EQ(evaluate({"--load", "0.8"}).code, 2);
  EXPECT_EQ(evaluate({"--in-time", "--trace", list}).code, 1) << "it has no timestamp";
}

double simulated_mean(const std::string& policy, const std::string& cluster,
                      const std::string& workload, const Argv& more) {
  Argv words{"policy",  "evaluate", "--cluster", cluster,      "--workload",      workload,
             "--seeds", "2",        "-j",        "--policies", "random," + policy};
  words.insert(words.end(), more.begin(), more.end());
  const auto outcome = tierctl_at("unix:/nowhere/c.sock", words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  double sum = 0;
  const auto value = parse(outcome.out);
  for (const auto& run : value["runs"])
    if (run["policy"] == policy) sum += run["response_mean_s"].get<double>();
  return sum / 2;
}

// Nodes with room fetch what full ones hold, and evict what others need: with the shipped weights
// the dqn ends that by keeping tasks back.
TEST(Lab, TasksThatWaitForTheirDataKeepABusyClusterGoing) {
  const TempFolder folder("/tmp");
  const auto cluster = written(folder, "cluster.toml", R"(
[[nodes]]
count = 8
units = 2
fast_budget = "4GiB"
link_gb_per_s = 0.8
promote_gb_per_s = 0.8
evict_gb_per_s = 0.5
)");
  const auto workload = written(folder, "workload.toml", R"(
[workload]
tasks = 2000
offered_load = 0.9
datasets = 192
min_dataset = "64MiB"
max_dataset = "512MiB"
min_operations = 1e8
max_operations = 2e9
write_share = 0.05
)");
  const auto mean_of_dqn = [&](const Argv& more) {
    return simulated_mean("dqn", cluster, workload, more);
  };
  EXPECT_LT(mean_of_dqn({}), 0.8 * mean_of_dqn({"--no-hold"}));
}

TEST(Lab, BurstsAreServedShortestFirstUnlessTheOrderIsThatOfArrival) {
  const TempFolder folder("/tmp");
  const auto cluster = written(folder, "cluster.toml", "[[nodes]]\ncount = 4\nunits = 2\n");
  const auto workload = written(folder, "workload.toml", R"(
[workload]
tasks = 2000
offered_load = 0.6
burst_factor = 2.5
burst_share = 0.2
burst_mean_s = 10
max_operations = 3e9
)");
  const auto mean_in = [&](const Argv& more) {
    return simulated_mean("least-loaded", cluster, workload, more);
  };
  const double shortest = mean_in({});
  EXPECT_EQ(mean_in({"--order", "shortest"}), shortest);
  EXPECT_LT(shortest, 0.9 * mean_in({"--order", "arrival"}));
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock", {"policy", "evaluate", "--order", "size"}).code, 2);
}

TEST(Lab, HeuristicsAreEvaluatedAlsoAsTheyArePublished) {
  const Argv evaluate{"policy", "evaluate", "--policies", "least-loaded", "--seeds", "1", "-j"};
  const auto with = [&](const Argv& more) {
    Argv arguments = evaluate;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tierctl_at("unix:/nowhere/c.sock", arguments);
  };
  const auto outcome = with({"--plain", "least-loaded,locality-load"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out);
  EXPECT_EQ(value["policies"],
            (nlohmann::json{"least-loaded", "plain-least-loaded", "plain-locality-load"}));
  for (const char* name : {"dqn", "slowest"}) {
    const auto refused = with({"--plain", name});
    EXPECT_EQ(refused.code, name == std::string("dqn") ? 2 : 3);
    EXPECT_NE(refused.err.find(name), std::string::npos) << refused.err;
  }
}

TEST(Lab, RowsOfATraceThatAreLeftOutAreNamed) {
  const TempFolder folder("/tmp");
  const auto cluster = written(folder, "cluster.toml", "[[nodes]]\ncount = 4\nunits = 4\n");
  const auto trace = written(folder, "trace.swf",
                             "1 0 1 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n"
                             "2 x 1 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n");
  for (const Argv& command : {Argv{"simulate", "--policy", "random"},
                              Argv{"policy", "evaluate", "--policies", "random"}}) {
    Argv arguments = command;
    for (const auto& word : {std::string("--cluster"), cluster, std::string("--workload"),
                             "trace:swf:" + trace, std::string("--seeds"), std::string("1")})
      arguments.push_back(word);
    const auto outcome = tierctl_at("unix:/nowhere/c.sock", arguments);
    EXPECT_NE(outcome.out.find("Rows left out: 1 of the trace's 2"), std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find(trace + ":2"), std::string::npos) << outcome.out;
  }
}

TEST(Lab, NodesThatReadInTurnAreServedSooner) {
  const TempFolder folder("/tmp");
  const auto cluster = written(folder, "cluster.toml", R"(
[[nodes]]
count = 32
fast_budget = "2GiB"
link_gb_per_s = 0.3
)");
  const auto workload = written(folder, "workload.toml", R"(
[workload]
tasks = 1000
offered_load = 0.6
datasets = 50
min_dataset = "100MiB"
max_dataset = "200MiB"
max_operations = 1e9
)");
  const auto mean_in = [&](const Argv& more) {
    return simulated_mean("least-loaded", cluster, workload, more);
  };
  const double in_turn = mean_in({});
  EXPECT_EQ(mean_in({"--readers", "2"}), in_turn);
  EXPECT_LT(in_turn, 0.9 * mean_in({"--readers", "1000"}));
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock", {"policy", "evaluate", "--readers", "0"}).code, 2);
}

TEST(Lab, PoliciesLearnDuringSimulatedRunsWhenTheyAreToldTo) {
  const TempFolder folder("/tmp");
  const auto cluster = written(folder, "cluster.toml", "[[nodes]]\ncount = 4\nunits = 2\n");
  const auto workload = written(folder, "workload.toml", "[workload]\ntasks = 400\n");
  const auto learning = written(folder, "learning.toml",
                                "[dqn]\ntrain_start = 64\nbatch = 64\n"
                                "[dqn-published]\nwidth = 16\nlayers = 1\nfeed_forward = 16\n"
                                "train_start = 64\nbatch = 64\n");
  const auto simulate = [&](Argv more) {
    Argv words{"-j",         "simulate", "--cluster", cluster,
               "--workload", workload,   "--policy",  "random,dqn,dqn-published"};
    words.insert(words.end(), more.begin(), more.end());
    return tierctl_at("unix:/nowhere/c.sock", words);
  };
  const auto learned = simulate({"--learn", "--learning", learning});
  ASSERT_EQ(learned.code, 0) << learned.err;
  EXPECT_EQ(learned.out, simulate({"--learn", "--learning", learning}).out);
  const auto anew = simulate({"--learn", "--learning", learning, "--weights", "none"});
  ASSERT_EQ(anew.code, 0) << anew.err;
  const auto rows = parse(learned.out)["policies"], rows_anew = parse(anew.out)["policies"];
  EXPECT_EQ(rows[0], rows_anew[0]);
  EXPECT_NE(rows[1]["response_mean_s"], rows_anew[1]["response_mean_s"]);
  EXPECT_EQ(rows[2], rows_anew[2]);

  expect_json_error(simulate({}), 2, "--learn");
  expect_json_error(simulate({"--learn", "--learning", "/no/such"}), 3, "/no/such");
  const auto path = written(folder, "path.toml", "[dqn]\nweights = \"/a\"\n");
  expect_json_error(simulate({"--learn", "--learning", path}), 2, "--weights");
  const auto typo = written(folder, "typo.toml", "[dqn]\nbatsch = 64\n");
  expect_json_error(simulate({"--learn", "--learning", typo}), 2, "batsch");
  EXPECT_EQ(simulate({"--learning", learning}).code, 2);
}

}  // namespace
}  // namespace tierpilot::test
