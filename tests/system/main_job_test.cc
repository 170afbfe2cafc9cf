// The main job, small: datasets, tasks of each kind, dependencies, cancelling, refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

std::string repeat(const std::string& text, size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

class MainJob : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!cluster_unavailable())
      cluster_ =
          std::make_unique<Cluster>(ClusterOptions{.nodes = 3, .policy = "dqn", .calibrate = true});
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }

  static Client& client() { return cluster_->client(); }
  static std::filesystem::path folder() { return cluster_->folder(); }

  static std::string make_file(const std::string& name, const std::string& text) {
    const auto path = folder() / name;
    std::ofstream(path) << text;
    return path.string();
  }

  // Runs one task to its end.
  static Json run(const TaskPlan& task) {
    const auto submitted = client().submit({task});
    if (!submitted) throw std::runtime_error(submitted.error().message);
    const auto ended = client().wait(submitted->tasks.at(0));
    if (!ended) throw std::runtime_error(ended.error().message);
    return *ended;
  }

  static void expect_refused(const TaskPlan& task, ErrorCode code,
                             const std::vector<std::string>& words) {
    const auto answer = client().submit({task});
    ASSERT_FALSE(answer) << "it was taken";
    EXPECT_EQ(error_code_name(answer.error().code), error_code_name(code));
    for (const auto& word : words)
      EXPECT_NE(answer.error().message.find(word), std::string::npos)
          << "'" << word << "' is not in: " << answer.error().message;
  }

  static inline std::unique_ptr<Cluster> cluster_;
};

TEST_F(MainJob, ReadsADatasetFromTheFileItsEnvironmentNames) {
  const auto text = repeat("measured, not guessed\n", 1000);
  ASSERT_TRUE(client().add_dataset_file("some-words", make_file("words.txt", text)));
  auto task = shell_task("cat \"$TIERPILOT_DATASET_SOME_WORDS\"; echo to-stderr >&2");
  task.datasets = {{"some-words", false}};
  const auto ended = run(task);
  EXPECT_EQ(ended["state"], "succeeded") << ended.dump(2);
  EXPECT_EQ(client().log(ended["id"]).value_or("no log"), text);
  EXPECT_EQ(client().log(ended["id"], "stderr").value_or("no log"), "to-stderr\n");
  const auto& served = ended["served"];
  EXPECT_EQ(served["local_bytes"].get<uint64_t>() + served["promoted_bytes"].get<uint64_t>() +
                served["fetched_bytes"].get<uint64_t>(),
            text.size());
  EXPECT_EQ(ended["exit"]["how"], "exited");
  EXPECT_GT(ended["exit"]["wall_ns"].get<uint64_t>(), 0u);
  EXPECT_GT(ended["exit"]["max_resident_bytes"].get<uint64_t>(), 0u);
}

TEST_F(MainJob, ExplainsADecisionWithItsMeasuredReward) {
  ASSERT_TRUE(client().add_dataset_zeros("explained", 1 << 20));
  auto task = shell_task("wc -c < \"$TIERPILOT_DATASET_EXPLAINED\"");
  task.datasets = {{"explained", false}};
  const auto ended = run(task);
  ASSERT_EQ(ended["state"], "succeeded") << ended.dump(2);
  EXPECT_EQ(client().log(ended["id"]).value_or("no log"), "1048576\n");
  const auto decisions = client().explain(ended["id"]);
  ASSERT_TRUE(decisions) << decisions.error().message;
  ASSERT_EQ(decisions->size(), 1u);
  const auto& decision = decisions->at(0);
  EXPECT_EQ(decision["policy"], "dqn");
  EXPECT_EQ(decision["node"], ended["node"]);
  EXPECT_EQ(decision["candidates"].size(), 3u);
  // On a machine that is too loaded for its deadline a heuristic decided, and there are no Q
  // values.
  for (const auto& candidate : decision["candidates"])
    if (decision["fallback"] == "" && candidate["eligible"] && !decision["explored"])
      EXPECT_TRUE(candidate["q"].is_number()) << decision.dump(2);
  EXPECT_EQ(decision["observation"]["data_bytes"], 1 << 20);
  EXPECT_FALSE(decision["observation"]["writes"]);
  const auto& reward = decision["reward"];
  ASSERT_TRUE(reward["reward"].is_number()) << decision.dump(2);
  EXPECT_GT(reward["latency_ns"].get<uint64_t>(), 0u);
  EXPECT_GT(reward["reference_ns"].get<uint64_t>(), 0u);
}

TEST_F(MainJob, AWriteReachesReadersOnOtherNodes) {
  ASSERT_TRUE(client().add_dataset_file("shared", make_file("shared.txt", "old content\n"), "n1"));
  auto read = shell_task("cat \"$TIERPILOT_DATASET_SHARED\"");
  read.datasets = {{"shared", false}};
  read.node = "n3";
  const auto before = run(read);
  EXPECT_EQ(client().log(before["id"]).value_or("no log"), "old content\n");

  auto write = shell_task("printf 'new content\\n' > \"$TIERPILOT_DATASET_SHARED\"");
  write.datasets = {{"shared", true}};
  write.node = "n1";
  const auto written = run(write);
  ASSERT_EQ(written["state"], "succeeded") << written.dump(2);
  EXPECT_EQ(written["node"], "n1");

  for (const std::string node : {"n2", "n3"}) {
    read.node = node;
    const auto after = run(read);
    EXPECT_EQ(after["node"], node);
    EXPECT_EQ(client().log(after["id"]).value_or("no log"), "new content\n") << node;
  }
  const auto dataset = client().dataset("shared");
  ASSERT_TRUE(dataset);
  EXPECT_EQ((*dataset)["writes"], 1);
  for (const auto& replica : (*dataset)["replicas"])
    EXPECT_EQ(replica["version"], (*dataset)["version"]) << dataset->dump(2);
}

TEST_F(MainJob, AFailedWriteChangesNothing) {
  ASSERT_TRUE(client().add_dataset_file("kept", make_file("kept.txt", "as it was\n"), "n1"));
  auto write = shell_task("printf 'half done' > \"$TIERPILOT_DATASET_KEPT\"; exit 1");
  write.datasets = {{"kept", true}};
  EXPECT_EQ(run(write)["state"], "failed");
  auto read = shell_task("cat \"$TIERPILOT_DATASET_KEPT\"");
  read.datasets = {{"kept", false}};
  EXPECT_EQ(client().log(run(read)["id"]).value_or("no log"), "as it was\n");
}

TEST_F(MainJob, RunsADagInItsOrder) {
  const auto journal = folder() / "dag-order";
  std::vector<TaskPlan> tasks;
  for (const std::string name : {"last", "left", "first", "right"}) {
    tasks.push_back(shell_task(fmt::format("echo {} >> {}", name, journal.string())));
    tasks.back().name = name;
  }
  tasks[0].after = {"left", "right"};
  tasks[1].after = {"first"};
  tasks[3].after = {"first"};
  const auto submitted = client().submit(tasks);
  ASSERT_TRUE(submitted) << submitted.error().message;
  for (const uint64_t id : submitted->tasks) {
    const auto ended = client().wait(id);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
  }
  std::istringstream lines(read_text(journal));
  std::vector<std::string> order;
  for (std::string line; std::getline(lines, line);) order.push_back(line);
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order.front(), "first");
  EXPECT_EQ(order.back(), "last");
}

TEST_F(MainJob, AFailureFailsItsDescendantsWithTheReason) {
  const auto ran = folder() / "must-not-exist";
  std::vector<TaskPlan> tasks{shell_task("exit 7"), shell_task("touch " + ran.string()),
                              shell_task("touch " + ran.string()), shell_task("true")};
  const char* names[] = {"breaks", "child", "grandchild", "unrelated"};
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].name = names[i];
  tasks[1].after = {"breaks"};
  tasks[2].after = {"child"};
  const auto submitted = client().submit(tasks);
  ASSERT_TRUE(submitted) << submitted.error().message;
  std::vector<Json> ended;
  for (const uint64_t id : submitted->tasks) ended.push_back(client().wait(id).value());
  EXPECT_EQ(ended[0]["state"], "failed");
  EXPECT_EQ(ended[0]["exit"]["code"], 7);
  for (const size_t i : {1u, 2u}) {
    EXPECT_EQ(ended[i]["state"], "failed");
    const auto reason = ended[i]["reason"].get<std::string>();
    EXPECT_NE(reason.find("breaks"), std::string::npos) << reason;
    EXPECT_NE(reason.find('7'), std::string::npos) << reason;
  }
  EXPECT_EQ(ended[3]["state"], "succeeded");
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST_F(MainJob, RefusesACycle) {
  std::vector<TaskPlan> tasks{shell_task("true"), shell_task("true")};
  tasks[0].name = "hen";
  tasks[1].name = "egg";
  tasks[0].after = {"egg"};
  tasks[1].after = {"hen"};
  const auto answer = client().submit(tasks);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  for (const char* word : {"cycle", "hen", "egg"})
    EXPECT_NE(answer.error().message.find(word), std::string::npos) << answer.error().message;
}

TEST_F(MainJob, CancellingEndsTheWholeGroup) {
  const auto pids = folder() / "pids";
  const auto submitted = client().submit({shell_task(fmt::format(
      "sleep 1000 & first=$!; (trap '' TERM; sleep 1000) & echo $$ $first $! > {0}.new; "
      "mv {0}.new {0}; sleep 1000",
      pids.string()))});
  ASSERT_TRUE(submitted);
  const uint64_t id = submitted->tasks[0];
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(pids); }));
  std::istringstream words(read_text(pids));
  std::vector<pid_t> group;
  for (pid_t pid; words >> pid;) group.push_back(pid);
  ASSERT_EQ(group.size(), 3u);
  for (const pid_t pid : group) EXPECT_TRUE(is_alive(pid));
  ASSERT_TRUE(client().cancel(id));
  const auto ended = client().wait(id);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ((*ended)["state"], "cancelled") << ended->dump(2);
  for (const pid_t pid : group) EXPECT_FALSE(is_alive(pid)) << pid << " outlived its task";
}

TEST_F(MainJob, ATaskThatCannotStartSaysWhy) {
  TaskPlan task;
  task.argv = {"/nowhere/no-such-program"};
  const auto ended = run(task);
  EXPECT_EQ(ended["state"], "failed");
  EXPECT_EQ(ended["exit"]["how"], "could_not_start");
  const auto reason = ended["reason"].get<std::string>();
  EXPECT_NE(reason.find("/nowhere/no-such-program"), std::string::npos) << reason;
  EXPECT_NE(reason.find("No such file"), std::string::npos) << reason;
}

TEST_F(MainJob, RefusesWhatCanNeverRun) {
  auto task = shell_task("true");
  task.name = "impossible";
  auto greedy = task;
  greedy.units = 3;
  expect_refused(greedy, ErrorCode::kInvalid, {"impossible", "3 units", "2"});
  auto vast = task;
  vast.memory_bytes = uint64_t{1} << 40;
  expect_refused(vast, ErrorCode::kInvalid, {"impossible", "memory", "1.0 TiB"});
  auto lost = task;
  lost.datasets = {{"never-added", false}};
  expect_refused(lost, ErrorCode::kNotFound, {"impossible", "never-added"});
  auto nowhere = task;
  nowhere.node = "n99";
  expect_refused(nowhere, ErrorCode::kNotFound, {"impossible", "n99"});
  auto orphan = task;
  orphan.after = {"nobody"};
  expect_refused(orphan, ErrorCode::kInvalid, {"impossible", "nobody"});
  TaskPlan empty;
  empty.name = "impossible";
  expect_refused(empty, ErrorCode::kInvalid, {"impossible", "command is empty"});
  empty.argv = {""};
  expect_refused(empty, ErrorCode::kInvalid, {"impossible", "command is empty"});
  EXPECT_FALSE(client().submit({}));
  const auto health = client().health();
  ASSERT_TRUE(health);
  EXPECT_EQ((*health)["queued"], 0);
}

TEST_F(MainJob, RefusesADatasetWhoseSourceIsMissing) {
  const auto missing = (folder() / "no-such-source").string();
  const auto answer = client().add_dataset_file("unborn", missing);
  ASSERT_FALSE(answer);
  for (const auto& word : {std::string("unborn"), missing, std::string("No such file")})
    EXPECT_NE(answer.error().message.find(word), std::string::npos) << answer.error().message;
  EXPECT_FALSE(client().dataset("unborn"));
  // The name is free for a source that exists.
  EXPECT_TRUE(client().add_dataset_file("unborn", make_file("born.txt", "here\n")));
  EXPECT_FALSE(client().add_dataset_file("unborn", make_file("born.txt", "here\n")));
}

TEST_F(MainJob, ARequestIdMakesSubmitsRepeatable) {
  const auto first = client().submit({shell_task("true")}, "the-same");
  const auto second = client().submit({shell_task("true")}, "the-same");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  const auto other = client().submit({shell_task("false")}, "the-same");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace tierpilot::test
