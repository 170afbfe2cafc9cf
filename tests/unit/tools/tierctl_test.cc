#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "tests/unit/tools/tierctl_fixture.h"

namespace tierpilot {
namespace {

using nlohmann::json;

TEST_F(Tierctl, StatusIsAValueWithASchema) {
  const auto ran = at({"status", "-j"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.value()["schema"], 1);
  EXPECT_EQ(ran.value()["health"]["version"], "fake");
  const auto table = at({"status"});
  EXPECT_NE(table.out.find("1.0 min ago"), std::string::npos) << table.out;
}

TEST_F(Tierctl, ADegradedCoordinatorIsExitFour) {
  fake_.state.degraded = "the store cannot be written";
  const auto ran = at({"status"});
  EXPECT_EQ(ran.code, kExitDegraded);
  EXPECT_NE(ran.err.find("the store cannot be written"), std::string::npos);
}

TEST_F(Tierctl, ASilentCoordinatorIsATimeout) {
  fake_.state.silent = true;
  const auto ran = at({"status", "--timeout", "100ms"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_NE(ran.err.find("no answer within 100 ms"), std::string::npos) << ran.err;
}

TEST_F(Tierctl, NodesShowWhatCouldNotBeMeasured) {
  const auto tier = at({"node", "list", "-j"}).value()["nodes"][0]["info"]["tiers"][0];
  EXPECT_EQ(tier["read_gb_per_s"], 10);
  EXPECT_TRUE(tier["evict_gb_per_s"].is_null());
  EXPECT_EQ(tier["evict_gb_per_s_unavailable"], "nothing was evicted yet");
  EXPECT_NE(at({"node", "show", "n1"}).out.find("nothing was evicted yet"), std::string::npos);
}

TEST_F(Tierctl, WhatIsNotThereIsExitThree) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"node", "show", "n9"},
                                                                 {"dataset", "remove", "n9"},
                                                                 {"task", "show", "99"},
                                                                 {"task", "explain", "99"},
                                                                 {"task", "logs", "99"},
                                                                 {"policy", "use", "n9"}}) {
    const auto ran = at(words);
    EXPECT_EQ(ran.code, kExitNotFound) << words[0] << ' ' << words[1] << ": " << ran.err;
    EXPECT_NE(ran.err.find("9' is not known"), words[0] == "task" ? 0 : std::string::npos)
        << ran.err;
    EXPECT_TRUE(ran.out.empty());
  }
}

TEST_F(Tierctl, DatasetsOfAllSources) {
  EXPECT_EQ(at({"dataset", "add", "zeros", "--zero", "1MiB", "-j"}).value()["dataset"]["bytes"],
            1 << 20);
  EXPECT_EQ(at({"dataset", "add", "noise", "--random", "1KiB", "--seed", "3", "-j"})
                .value()["dataset"]["bytes"],
            1027);  // the fake adds the seed
  EXPECT_EQ(at({"dataset", "add", "file", "--file", "/abc", "-j"}).value()["dataset"]["bytes"], 4);
  const auto again = at({"dataset", "add", "zeros", "--zero", "1"});
  EXPECT_EQ(again.code, kExitFailed);
  EXPECT_NE(again.err.find("'zeros' exists"), std::string::npos);
}

TEST_F(Tierctl, DatasetListWalksAllPages) {
  fake_.state.datasets = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}};
  const auto datasets = at({"dataset", "list", "-j"}).value()["datasets"];
  ASSERT_EQ(datasets.size(), 5u);
  EXPECT_EQ(datasets[4]["name"], "e");
  EXPECT_EQ(datasets[0]["fast_on"], json({"n1"})) << "a stale replica does not count";
}

TEST_F(Tierctl, SubmitSendsWhatTheLineSays) {
  const auto ran = at({"task", "submit", "--dataset", "genes", "--dataset", "out:rw", "--memory",
                       "1MiB", "--time-limit", "2s", "-j", "--", "sort", "-u", "list", "--wait"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto& seen = fake_.state.submits.at(0);
  EXPECT_EQ(seen.first_argv, (std::vector<std::string>{"sort", "-u", "list", "--wait"}));
  EXPECT_EQ(seen.first_datasets, (std::vector<std::string>{"genes", "out:rw"}));
  EXPECT_EQ(seen.names, std::vector<std::string>{"sort"});
  EXPECT_EQ(seen.memory_bytes, 1u << 20);
  EXPECT_EQ(seen.time_limit_ms, 2'000);
  EXPECT_EQ(ran.value()["tasks"][0]["id"], 1);
  EXPECT_EQ(ran.value()["request_id"], seen.request_id);
}

TEST_F(Tierctl, SubmitPassesTheMemoryTierOnAndRefusesUnknownOnes) {
  const auto ran = at({"task", "submit", "--mem-tier", "interleave:3,1", "--", "true"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(fake_.state.submits.at(0).memory_tier, "interleave:3,1");
  for (const char* tier : {"medium", "heap", "interleave:0,1"}) {
    const auto refused = at({"task", "submit", "--mem-tier", tier, "--", "true"});
    EXPECT_EQ(refused.code, kExitUsage) << tier;
    EXPECT_NE(refused.err.find("heap:W1,W2"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(fake_.state.submits.size(), 1u);
}

TEST_F(Tierctl, SubmitNamesWhatIsWrongWithAShareOrAPromise) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--share", ""}, "write auto, or thousandths"},
      {{"--share", "500:0"}, "no memory is no share"},
      {{"--share", "500:99999999999999999999"}, "is too large"},
      {{"--share", "auto", "--promise", "0s"}, "'0s' is too short for a promise"},
      {{"--share", "auto", "--promise", "1ms"}, "ask for 1 s or more"},
      {{"--share", "auto", "--promise", "10000000h"}, "longer than ten years"}};
  for (const auto& [options, cause] : cases) {
    std::vector<std::string> words{"task", "submit"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const auto refused = at(words);
    EXPECT_EQ(refused.code, kExitUsage) << cause;
    EXPECT_NE(refused.err.find(cause), std::string::npos) << refused.err;
  }
  EXPECT_TRUE(fake_.state.submits.empty());
}

TEST_F(Tierctl, ATaskThatWaitsForAShareHasNoUnit) {
  add_tasks({"queued", "running"});
  fake_.state.shares = {{1, 0}, {2, 300}};
  const auto waits = at({"task", "show", "1"}).out, runs = at({"task", "show", "2"}).out;
  EXPECT_NE(waits.find("Share of a unit"), std::string::npos) << waits;
  EXPECT_EQ(waits.find("Unit of its node"), std::string::npos) << waits;
  EXPECT_NE(runs.find("Unit of its node"), std::string::npos) << runs;
  EXPECT_TRUE(at({"task", "show", "1", "-j"}).value()["task"]["unit_share"]["unit"].is_null());
  EXPECT_EQ(at({"task", "show", "2", "-j"}).value()["task"]["unit_share"]["unit"], 0);
}

TEST_F(Tierctl, WhatATaskMeasuresIsShownInItsUnits) {
  add_tasks({"succeeded"});
  fake_.state.measures = {{"accuracy", 0.915},
                          {"swap_bytes_out", 1536.0 * 1024 * 1024},
                          {"swap_last_stall_ns", 12e6},
                          {"evil\x1b[2J", 7}};
  const auto shown = at({"task", "show", "1"}).out;
  testing::internal::CaptureStdout();
  at({"task", "watch", "1"});
  const auto watched = testing::internal::GetCapturedStdout();
  for (const auto& text : {shown, watched}) {
    EXPECT_THAT(text, testing::ContainsRegex("accuracy +0.915"));
    EXPECT_THAT(text, testing::ContainsRegex("swap_bytes_out +1.5 GiB"));
    EXPECT_THAT(text, testing::ContainsRegex("swap_last_stall_ns +12 ms"));
    EXPECT_EQ(text.find('\x1b'), text.npos) << text;
  }
  const auto measures = at({"task", "show", "1", "-j"}).value()["task"]["progress"][0]["measures"];
  EXPECT_EQ(measures[0], json({{"name", "accuracy"}, {"value", 0.915}}));
}

// A command may be any bytes, and the reason why it could not be run names it.
TEST_F(Tierctl, WatchesTasksWhoseReasonIsNoText) {
  add_tasks({"failed"});
  fake_.state.reason = "/no\xff\x1b[2J: no such file";
  const auto watched = [&](std::vector<std::string> words) {
    testing::internal::CaptureStdout();
    at(std::move(words));
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(watched({"task", "watch", "1"}).find_first_of("\xff\x1b"), std::string::npos);
  const auto line = parse_json<json>(watched({"task", "watch", "1", "-j"}));
  EXPECT_EQ(line["schema"], 1);
  EXPECT_EQ(line["state"], "failed");
}

TEST_F(Tierctl, PauseAndResumeShowTheTask) {
  add_tasks({"running"});
  const auto paused = at({"task", "pause", "1", "-j"}).value()["task"];
  EXPECT_EQ(paused["state"], "running");
  EXPECT_EQ(paused["reason"], "paused");
  EXPECT_EQ(at({"task", "resume", "1", "-j"}).value()["task"]["reason"], "");
  EXPECT_EQ(at({"task", "pause", "9"}).code, kExitNotFound);
}

// Other programs of one interpreter are not runs of its name.
TEST_F(Tierctl, ATaskWithAShareIsCalledByItsWholeCommand) {
  fake_.state.is_of_now = true;
  const auto name_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"task", "submit"});
    const auto ran = at(words);
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    return fake_.state.submits.empty() ? "" : fake_.state.submits.back().names.at(0);
  };
  const auto first = name_of({"--share", "auto", "--", "python3", "a.py"});
  EXPECT_TRUE(first.starts_with("python3-")) << first;
  EXPECT_EQ(name_of({"--share", "200", "--", "python3", "a.py"}), first);
  EXPECT_NE(name_of({"--share", "auto", "--", "python3", "b.py"}), first);
  EXPECT_NE(name_of({"--share", "auto", "--", "python3", "a.py", ""}), first);
  EXPECT_EQ(name_of({"--share", "auto", "--name", "mine", "--", "python3", "a.py"}), "mine");
  EXPECT_EQ(name_of({"--", "python3", "a.py"}), "python3");
}

TEST_F(Tierctl, RequestIdsAreDrawnOrTaken) {
  at({"task", "submit", "--", "true"});
  at({"task", "submit", "--", "true"});
  at({"task", "submit", "--request-id", "mine", "--", "true"});
  const auto& submits = fake_.state.submits;
  EXPECT_EQ(submits.at(0).request_id.size(), 32u);
  EXPECT_NE(submits.at(0).request_id, submits.at(1).request_id);
  EXPECT_EQ(submits.at(2).request_id, "mine");
}

TEST_F(Tierctl, SubmitAndWaitGivesTheTasksFate) {
  EXPECT_EQ(at({"task", "submit", "--wait", "--", "true"}).code, kExitOk);
  EXPECT_EQ(at({"task", "submit", "--wait", "--", "false"}).code, kExitFailed);
}

TEST_F(Tierctl, AFileIsSubmittedWhole) {
  const std::string path = fake_.folder() + "/tasks.json";
  std::ofstream(path) << R"({"tasks": [{"name": "a", "command": ["true"]},
                                       {"name": "b", "command": ["true"], "after": ["a"]}]})";
  const auto ran = at({"task", "submit", "--file", path});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(fake_.state.submits.at(0).names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fake_.state.submits.at(0).last_after, std::vector<std::string>{"a"});
}

TEST_F(Tierctl, ABadFileIsRefusedBeforeAnythingIsSent) {
  const std::string path = fake_.folder() + "/tasks.json";
  std::ofstream(path) << "{\"tasks\": [}";
  const auto ran = at({"task", "submit", "--file", path, "-j"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(parse_json<json>(ran.err)["error"]["code"], "invalid");
  EXPECT_NE(ran.err.find("tasks.json:1:12"), std::string::npos) << ran.err;
  EXPECT_TRUE(fake_.state.submits.empty());
}

TEST_F(Tierctl, TaskListWalksAllPagesAndFilters) {
  add_tasks({"succeeded", "failed", "running", "queued", "succeeded"});
  const auto tasks = at({"task", "list", "-j"}).value()["tasks"];
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks[0]["wait_ms"], 250);
  EXPECT_EQ(tasks[0]["response_ms"], 1000);
  EXPECT_TRUE(tasks[2]["response_ms"].is_null());
  EXPECT_EQ(at({"task", "list", "--state", "succeeded", "-j"}).value()["tasks"].size(), 2u);
  for (const char* option : {"--submission", "--job"})
    EXPECT_EQ(at({"task", "list", option, "7", "-j"}).value()["tasks"].size(), tasks.size());
}

TEST_F(Tierctl, WaitGivesTheTasksFateOrATimeout) {
  add_tasks({"succeeded", "failed", "running"});
  EXPECT_EQ(at({"task", "wait", "1"}).code, kExitOk);
  EXPECT_EQ(at({"task", "wait", "1", "2"}).code, kExitFailed);
  const auto late = at({"task", "wait", "1", "3", "--timeout", "10ms"});
  EXPECT_EQ(late.code, kExitFailed);
  EXPECT_NE(late.err.find("1 of 2 tasks had not ended"), std::string::npos) << late.err;
  EXPECT_EQ(at({"task", "wait", "9"}).code, kExitNotFound);
}

TEST_F(Tierctl, WaitsForMoreTasksThanOneAnswerHolds) {
  std::vector<std::string> words{"task", "wait", "-j"};
  for (int id = 1; id <= 150; ++id) {
    add_tasks({"succeeded"});
    words.push_back(std::to_string(id));
  }
  const auto ran = at(words);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.value()["tasks"].size(), 150u);
}

TEST_F(Tierctl, ShowReadsLikeACommandLine) {
  add_tasks({"succeeded"});
  const auto text = at({"task", "show", "1"}).out;
  EXPECT_NE(text.find("sh -c 'exit 0'"), std::string::npos) << text;
  EXPECT_NE(text.find("none"), std::string::npos) << "no memory limit: " << text;
}

TEST_F(Tierctl, CancelShowsTheTask) {
  add_tasks({"running"});
  EXPECT_EQ(at({"task", "cancel", "1", "-j"}).value()["task"]["state"], "cancelled");
}

TEST_F(Tierctl, LogsAreTheTasksBytes) {
  add_tasks({"succeeded"});
  fake_.state.log = "one\ntwo\nthree\n";
  EXPECT_EQ(at({"task", "logs", "1"}).out, "one\ntwo\nthree\n");
  EXPECT_EQ(at({"task", "logs", "1", "-f"}).out, "one\ntwo\nthree\n");
  EXPECT_EQ(at({"task", "logs", "1", "--stderr"}).out, "");
  EXPECT_EQ(at({"task", "logs", "1", "-j"}).value()["text"], "one\ntwo\nthree\n");
}

TEST_F(Tierctl, WhatADriverDoesNotTellOfAGpuIsNoZero) {
  const auto ran = at({"node", "show", "n1"});
  expect_parts(ran, {"16,896", "its driver does not tell it"});
  const auto info = at({"node", "show", "n1", "-j"}).value()["node"]["info"];
  EXPECT_TRUE(info["gpus"][0]["sm_clock_mhz"].is_null());
  EXPECT_TRUE(info["shared_units"][0]["cores"].is_null());
  EXPECT_EQ(info["shared_units"][1]["cores"], 2);
}

TEST_F(Tierctl, UnitsThatAreSharedTellHowManyThousandthsEachHas) {
  expect_parts(at({"unit", "list"}), {"n1/cores/1", "41 (200), 42 (300)", "CORES"});
  const auto units = at({"unit", "list", "-j"}).value()["units"];
  EXPECT_TRUE(units[0]["cores"].is_null());
  EXPECT_EQ(units[1]["cores"], 2);
  EXPECT_EQ(units[1]["shares"][1]["task"], 42);
  EXPECT_EQ(units[1]["shares"][1]["milli"], 300);
}

}  // namespace
}  // namespace tierpilot
