#include "tools/tierctl/submission/submission_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "tools/tierctl/submission/share_words.h"

namespace tierpilot::tierctl {
namespace {

TEST(SubmissionFile, ReadsEveryKey) {
  const auto submission = parse_submission(R"({"tasks": [
    {"name": "a", "command": ["sort", "-u"],
     "datasets": [{"name": "genes", "mode": "write"}, {"name": "map"}],
     "units": 2, "memory": "1GiB", "swap_room": "2MiB", "float_operations": 5, "int_operations": 1e9,
     "time_limit": "1.5m", "env": {"LC_ALL": "C"}, "node": "n1", "mem_tier": "heap:2,1"},
    {"command": ["true"], "memory": 4096, "time_limit": 30, "after": ["a"]}]})",
                                           "tasks.json");
  ASSERT_TRUE(submission) << submission.error().message;
  ASSERT_EQ(submission->size(), 2u);
  const TaskSpec& a = submission->front();
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.argv, (std::vector<std::string>{"sort", "-u"}));
  ASSERT_EQ(a.datasets.size(), 2u);
  EXPECT_TRUE(a.datasets[0].write);
  EXPECT_FALSE(a.datasets[1].write);
  EXPECT_EQ(a.units, 2u);
  EXPECT_EQ(a.memory_bytes, 1u << 30);
  EXPECT_EQ(a.swap_room_bytes, 2u << 20);
  EXPECT_EQ(a.float_operations, 5);
  EXPECT_EQ(a.int_operations, 1e9);
  EXPECT_EQ(a.time_limit_ms, 90'000);
  ASSERT_EQ(a.env.size(), 1u);
  EXPECT_EQ(a.env[0].first, "LC_ALL");
  EXPECT_EQ(a.node, "n1");
  EXPECT_EQ(a.memory_tier, "heap:2,1");
  const TaskSpec& b = submission->back();
  EXPECT_EQ(b.name, "task-2");
  EXPECT_EQ(b.memory_bytes, 4096u);
  EXPECT_EQ(b.time_limit_ms, 30'000);
  EXPECT_EQ(b.after, std::vector<std::string>{"a"});
  EXPECT_EQ(b.units, 1u);
}

TEST(SubmissionFile, ReadsPromisesThatMayBeOnTrial) {
  const auto submission = parse_submission(R"({"tasks": [
    {"command": ["tune"], "share": "auto", "promise": "20m", "promise_on_trial": true},
    {"command": ["tune"], "share": 300, "promise": "20m"}]})",
                                           "tasks.json");
  ASSERT_TRUE(submission) << submission.error().message;
  EXPECT_TRUE(submission->front().share.promise_on_trial);
  EXPECT_EQ(submission->front().share.promise_ms, 1'200'000);
  EXPECT_FALSE(submission->back().share.promise_on_trial);
  for (const char* wrong : {R"("share": "auto", "promise": "1m", "promise_on_trial": "yes")",
                            R"("promise_on_trial": true)"})
    EXPECT_FALSE(parse_submission(
        std::string(R"({"tasks": [{"command": ["tune"], )") + wrong + "}]}", "tasks.json"))
        << wrong;
}

TEST(SubmissionFile, ReadsSharesWithAndWithoutMemory) {
  const auto submission = parse_submission(R"({"tasks": [
    {"command": ["tune"], "share": "auto:1GiB"}, {"command": ["tune"], "share": "300:2GiB"},
    {"command": ["tune"], "share": "auto", "promise": 1}]})",
                                           "tasks.json");
  ASSERT_TRUE(submission) << submission.error().message;
  EXPECT_TRUE((*submission)[0].share.wanted);
  EXPECT_EQ((*submission)[0].share.milli, 0u);
  EXPECT_EQ((*submission)[0].memory_bytes, 1u << 30);
  EXPECT_EQ((*submission)[1].share.milli, 300u);
  EXPECT_EQ((*submission)[2].share.promise_ms, 1000);
}

TEST(SubmissionFile, ReadsWhatIsToGetBetterInAnElasticTask) {
  const auto submission = parse_submission(R"({"tasks": [
    {"command": ["fit"], "elastic": "1:4", "weight": 2.5, "measure": "val:accuracy:up",
     "goal": 0.9, "deadline": "1h"},
    {"command": ["fit"], "elastic": "2:3"}]})",
                                           "tasks.json");
  ASSERT_TRUE(submission) << submission.error().message;
  const TaskSpec& a = submission->front();
  EXPECT_EQ(a.units, 1u);
  EXPECT_EQ(a.max_units, 4u);
  EXPECT_EQ(a.training_goal, (TrainingGoal{.weight = 2.5,
                                           .measure = "val:accuracy",
                                           .rises = true,
                                           .goal = 0.9,
                                           .deadline_ms = 3'600'000}));
  EXPECT_EQ(submission->back().training_goal, TrainingGoal{});
}

struct Bad {
  const char* place;
  const char* cause;
};

// Tasks of one name are taken for runs of one program.
TEST(SubmissionFile, TasksWithSharesAreNamedByTheirCommands) {
  const auto names = [](const std::string& tasks) {
    std::vector<std::string> names;
    const auto read = parse_submission("{\"tasks\": [" + tasks + "]}", "file");
    EXPECT_TRUE(read) << read.error().message;
    if (read)
      for (const auto& task : *read) names.push_back(task.name);
    return names;
  };
  const std::string tune = R"({"command": ["tune", "1"], "share": "auto"})",
                    fit = R"({"command": ["fit"], "share": "200"})";
  const auto first = names(tune + "," + fit + "," + tune);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_TRUE(first[0].starts_with("tune-")) << first[0];
  EXPECT_EQ(names(fit + "," + tune)[1], first[0]) << "wherever it stands";
  EXPECT_EQ(first[2], first[0] + "-2");
  const auto called = names(tune + R"(, {"command": ["end"], "after": ["task-1"]})");
  EXPECT_EQ(called, (std::vector<std::string>{"task-1", "task-2"}));
}

std::string one_task(const std::string& members) {
  return R"({"tasks": [{"command": ["x"], )" + members + "}]}";
}

std::string nested(size_t levels) {
  std::string text;
  for (size_t i = 0; i < levels; ++i) text += "{\"a\":";
  return text + "1" + std::string(levels, '}');
}

TEST(SubmissionFile, EveryMistakeIsNamedWithItsPlace) {
  const std::pair<std::string, Bad> cases[] = {
      {"", {"file:1:1: ", "malformed JSON"}},
      {"{\"tasks\": [\n  {\"command\": [\"x\"],}]}", {"file:2:21: ", "malformed JSON"}},
      {"{\"tasks\":\n[1 2]}", {"file:2:4: ", "malformed JSON"}},
      {"{\"tasks\": \"\xff\"}", {"file:1:", "UTF-8"}},
      {"{\"tasks\": 1e999}", {"file", "malformed JSON"}},
      {one_task(R"("mem_tier": "far")"), {"file: tasks[0].mem_tier: ", "interleave:W1,W2"}},
      {one_task(R"("mem_tier": 3)"), {"file: tasks[0].mem_tier: ", "must be a string"}},
      {one_task(R"("share": "")"), {"file: tasks[0].share: ", "write auto, or thousandths"}},
      {one_task(R"("share": "0")"), {"file: tasks[0].share: ", "write auto, or thousandths"}},
      {one_task(R"("share": "500:0")"), {"file: tasks[0].share: ", "no memory is no share"}},
      {one_task(R"("share": "500:much")"), {"file: tasks[0].share: ", "'much' is not a size"}},
      {one_task(R"("share": "500:99999999999999999999")"),
       {"file: tasks[0].share: ", "'99999999999999999999' is too large"}},
      {one_task(R"("share": "auto", "promise": 0)"),
       {"file: tasks[0].promise: ", "'0' is too short for a promise"}},
      {one_task(R"("share": "auto", "promise": "1ms")"),
       {"file: tasks[0].promise: ", "'1ms' is too short for a promise"}},
      {one_task(R"("share": "auto", "promise": "10000000h")"),
       {"file: tasks[0].promise: ", "'10000000h' is longer than ten years"}},
      {"[]", {"file: ", "must be an object"}},
      {"{}", {"file: tasks: ", "at least one task"}},
      {R"({"tasks": []})", {"file: tasks: ", "at least one task"}},
      {R"({"tasks": {}})", {"file: tasks: ", "must be a list"}},
      {R"({"tasks": [7]})", {"file: tasks[0]: ", "must be an object"}},
      {R"({"tasks": [], "task": []})",
       {"file: top level: ", "unknown key 'task'; there are: tasks"}},
      {R"({"tasks": [], "tasks": []})", {"file: ", "'tasks' stands twice"}},
      {R"({"tasks": [{}]})", {"file: tasks[0]: ", "needs a \"command\""}},
      {R"({"tasks": [{"command": []}]})", {"file: tasks[0]: ", "needs a \"command\""}},
      {R"({"tasks": [{"command": [""]}]})", {"file: tasks[0].command[0]: ", "must not be empty"}},
      {R"({"tasks": [{"command": "ls -l"}]})", {"file: tasks[0].command: ", "must be a list"}},
      {R"({"tasks": [{"command": ["ls", 1]}]})",
       {"file: tasks[0].command[1]: ", "must be a string"}},
      {one_task(R"("env": {"A": 1})"), {"file: tasks[0].env.A: ", "must be a string"}},
      {one_task(R"("env": {"A=B": "1"})"), {"file: tasks[0].env: ", "'A=B' cannot be the name"}},
      {one_task(R"("env": ["A=1"])"), {"file: tasks[0].env: ", "must be an object"}},
      {one_task("\"name\": \"a\\u0000b\""), {"file: tasks[0].name: ", "NUL"}},
      {one_task(R"("nmae": "a")"), {"file: tasks[0]: ", "unknown key 'nmae'"}},
      {one_task(R"("name": "")"), {"file: tasks[0].name: ", "must not be empty"}},
      {one_task(R"("units": 0)"), {"file: tasks[0].units: ", "from 1 to"}},
      {one_task(R"("units": -1)"), {"file: tasks[0].units: ", "from 1 to"}},
      {one_task(R"("units": 1.5)"), {"file: tasks[0].units: ", "from 1 to"}},
      {one_task(R"("units": 99999999999)"), {"file: tasks[0].units: ", "from 1 to"}},
      {one_task(R"("memory": -1)"), {"file: tasks[0].memory: ", "a size"}},
      {one_task(R"("memory": "lots")"), {"file: tasks[0].memory: ", "'lots' is not a size"}},
      {one_task(R"("float_operations": -1)"), {"file: tasks[0].float_operations: ", "0 or more"}},
      {one_task(R"("int_operations": "1")"), {"file: tasks[0].int_operations: ", "a number"}},
      {one_task(R"("time_limit": "soon")"),
       {"file: tasks[0].time_limit: ", "'soon' is not a duration"}},
      {one_task(R"("after": "a")"), {"file: tasks[0].after: ", "must be a list"}},
      {one_task(R"("datasets": ["a"])"), {"file: tasks[0].datasets[0]: ", "must be an object"}},
      {one_task(R"("datasets": [{}])"), {"file: tasks[0].datasets[0]: ", "needs a \"name\""}},
      {one_task(R"("datasets": [{"name": "a", "mode": "rw"}])"),
       {"file: tasks[0].datasets[0].mode: ", "\"read\" or \"write\""}},
      {one_task(R"("datasets": [{"name": "a", "x": 1}])"),
       {"file: tasks[0].datasets[0]: ", "unknown key 'x'"}},
      {R"({"tasks": [{"command": ["x"], "name": "a"}, {"command": ["y"], "name": "a"}]})",
       {"file: tasks[1].name: ", "'a' too"}},
      {one_task(R"("elastic": "0:4")"), {"file: tasks[0]: ", "write MIN:MAX"}},
      {one_task(R"("elastic": "1:4", "ranks": 2, "units_per_rank": 2)"),
       {"file: tasks[0]: ", "leave out units per rank"}},
      {one_task(R"("elastic": "1:4", "ranks": 2, "engine": "gpu")"),
       {"file: tasks[0]: ", "ranks on GPUs"}},
      {one_task(R"("estimate": "2h")"), {"file: tasks[0]: ", "with ranks or with a share"}},
      {one_task(R"("start_within": "2m")"), {"file: tasks[0]: ", "with ranks"}},
      {one_task(R"("ranks": 2, "units": 2)"), {"file: tasks[0]: ", "give units per rank"}},
      {one_task(R"("weight": 2)"), {"file: tasks[0]: ", "for an elastic task"}},
      {one_task(R"("elastic": "1:2", "weight": "2")"),
       {"file: tasks[0].weight: ", "must be a number"}},
      {one_task(R"("elastic": "1:2", "measure": "accuracy:high")"),
       {"file: tasks[0]: ", "NAME:down or NAME:up"}},
      {one_task(R"("elastic": "1:2", "measure": ":up")"), {"file: tasks[0]: ", "names none"}},
      {one_task(R"("elastic": "1:2", "goal": 1)"), {"file: tasks[0]: ", "needs its deadline"}},
      {one_task(R"("elastic": "1:2", "deadline": "1h")"), {"file: tasks[0]: ", "its goal"}},
      {one_task("\"share\": \"auto\", \"model_card\": " + nested(1'000'000)),
       {"file: ", "deeper than 100 levels"}},
      {std::string(200'000, '['), {"file: ", "deeper than 100 levels"}},
  };
  for (const auto& [json, bad] : cases) {
    const auto submission = parse_submission(json, "file");
    ASSERT_FALSE(submission) << json;
    EXPECT_EQ(submission.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(submission.error().message.rfind(bad.place, 0), 0u) << submission.error().message;
    EXPECT_NE(submission.error().message.find(bad.cause), std::string::npos)
        << submission.error().message;
  }
}

TEST(SubmissionFile, AFileThatIsNotThereIsNotFound) {
  const auto submission = load_submission("/nonexistent/tasks.json");
  ASSERT_FALSE(submission);
  EXPECT_EQ(submission.error().code, ErrorCode::kNotFound);
  EXPECT_NE(submission.error().message.find("/nonexistent/tasks.json"), std::string::npos);
  EXPECT_EQ(load_submission("/tmp").error().code, ErrorCode::kInvalid);
}

TEST(SubmissionFile, RefusesHugeFiles) {
  const std::string path = testing::TempDir() + "huge-tasks.json";
  std::ofstream(path) << std::string((16 << 20) + 1, ' ');
  const auto submission = load_submission(path);
  std::remove(path.c_str());
  ASSERT_FALSE(submission);
  EXPECT_NE(submission.error().message.find("larger than 16 MiB"), std::string::npos);
}

TEST(SubmissionFile, APipeThatNobodyWritesToIsRefused) {
  const std::string path = testing::TempDir() + "tasks-pipe";
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto submission = load_submission(path);
  std::remove(path.c_str());
  ASSERT_FALSE(submission);
  EXPECT_NE(submission.error().message.find("nobody writes to"), std::string::npos);
}

TEST(ModelCard, AFileThatIsNoCardIsRefusedRatherThanTakenForNone) {
  const std::string empty = testing::TempDir() + "empty-card.json";
  std::ofstream(empty).flush();
  const std::string pipe = testing::TempDir() + "card-pipe";
  std::remove(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& file : {empty, std::string("/dev/null"), std::string("/dev/zero"), pipe}) {
    TaskSpec task;
    const auto applied = apply(ShareWords{.share = "auto", .card_file = file}, task);
    ASSERT_FALSE(applied) << file;
    EXPECT_NE(applied.error().message.find("'" + file + "'"), std::string::npos)
        << applied.error().message;
  }
  const auto unnamed = parse_submission(
      R"({"tasks": [{"command": ["true"], "share": "auto", "model_card": ""}]})", "file");
  ASSERT_FALSE(unnamed);
  EXPECT_NE(unnamed.error().message.find("tasks[0].model_card: "), std::string::npos)
      << unnamed.error().message;
}

TEST(DatasetUse, NameAndMode) {
  EXPECT_FALSE(parse_dataset_use("genes")->write);
  EXPECT_FALSE(parse_dataset_use("genes:ro")->write);
  EXPECT_TRUE(parse_dataset_use("genes:rw")->write);
  EXPECT_EQ(parse_dataset_use("genes:rw")->dataset, "genes");
  for (const char* text : {"", ":rw", "genes:", "genes:x"}) {
    const auto use = parse_dataset_use(text);
    ASSERT_FALSE(use) << text;
    EXPECT_NE(use.error().message.find("NAME:rw"), std::string::npos);
  }
}

}  // namespace
}  // namespace tierpilot::tierctl
