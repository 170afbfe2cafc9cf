// kill -9 of the coordinator: nothing acknowledged is lost, nothing runs twice at once.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <set>

#include "tests/support/long_form.h"
#include "tests/system/cluster.h"
#include "tests/system/journal.h"

namespace tierpilot::test {
namespace {

constexpr int kRequestsPerBurst = 6;
constexpr int kLongestBurstMs = 30;

// What clients were told, and what they were not.
struct Ledger {
  std::map<std::string, Submitted> acknowledged;
  std::map<std::string, Request> unanswered;

  void note(const std::vector<Request>& requests, const std::vector<Result<Submitted>>& answers) {
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto& id = requests[i].id;
      if (!answers[i]) {
        EXPECT_EQ(answers[i].error().code, ErrorCode::kUnreachable) << answers[i].error().message;
        unanswered[id] = requests[i];
        continue;
      }
      unanswered.erase(id);
      const auto [known, fresh] = acknowledged.emplace(id, *answers[i]);
      EXPECT_EQ(known->second, *answers[i]) << "request " << id << " was answered differently";
    }
  }
};

std::vector<Request> make_burst(int crash, const Journal& journal) {
  std::vector<Request> requests;
  for (int i = 0; i < kRequestsPerBurst; ++i)
    requests.push_back({fmt::format("r{}-{}", crash, i), {journal.task("sleep 0.02")}});
  return requests;
}

// Every unanswered request again, and a few answered ones: they must give the same answer.
std::vector<Request> repeats(const Ledger& ledger, const std::vector<Request>& last) {
  std::vector<Request> requests;
  for (const auto& [id, request] : ledger.unanswered) requests.push_back(request);
  for (const auto& request : last)
    if (ledger.acknowledged.contains(request.id)) requests.push_back(request);
  return requests;
}

// No attempt ran twice, and none ran that had not been decided on disk; what is told of the end is
// what happened.
void expect_told(Client& client, uint64_t id, const std::vector<Journal::Run>& runs) {
  const auto told = client.show(id);
  ASSERT_TRUE(told) << told.error().message;
  const auto explained = client.explain(id);
  ASSERT_TRUE(explained) << explained.error().message;
  const auto& task = *told;
  const auto& decisions = *explained;
  EXPECT_EQ(task["exit"]["code"], 0) << told->dump(2);
  EXPECT_EQ(task["attempt"], runs.back().attempt) << "the last run is the one that counts";
  EXPECT_EQ(task["node"], runs.back().node);
  EXPECT_LE(decisions.size(), task["attempt"].get<size_t>());
  std::set<int> attempts;
  for (const auto& run : runs) {
    EXPECT_TRUE(attempts.insert(run.attempt).second)
        << "task " << id << " ran twice as attempt " << run.attempt;
    ASSERT_LE(static_cast<size_t>(run.attempt), decisions.size()) << "task " << id;
    EXPECT_EQ(decisions[static_cast<size_t>(run.attempt) - 1]["node"], run.node);
  }
}

class CoordinatorCrash : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
};

TEST_F(CoordinatorCrash, LosesNoAcknowledgedTaskAndRunsNoneTwiceAtOnce) {
  Cluster cluster({.nodes = 2, .units = 2, .lease_ms = 2000, .max_attempts = 100});
  const Journal journal(cluster.folder());
  Ledger ledger;
  std::mt19937 random(20240731);
  const int crashes = long_form() ? 50 : 20;
  size_t in_doubt = 0;
  for (int crash = 0; crash < crashes; ++crash) {
    const auto requests = make_burst(crash, journal);
    const int ms = std::uniform_int_distribution<int>(0, kLongestBurstMs)(random);
    ledger.note(requests, cluster.client().submit_burst(requests, ms,
                                                        [&] { cluster.coordinator().kill_now(); }));
    in_doubt += ledger.unanswered.size();
    cluster.start_coordinator();
    const auto again = repeats(ledger, requests);
    ledger.note(again, cluster.client().submit_burst(again, 0, [] {}));
    ASSERT_TRUE(ledger.unanswered.empty());
  }

  std::set<uint64_t> tasks;
  for (const auto& [id, submitted] : ledger.acknowledged) {
    ASSERT_EQ(submitted.tasks.size(), 1u);
    const uint64_t task = submitted.tasks[0];
    EXPECT_TRUE(tasks.insert(task).second) << "task " << task << " answers two requests";
    const auto ended = cluster.client().wait(task, 120'000);
    ASSERT_TRUE(ended) << "request " << id << ": " << ended.error().message;
    EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
  }
  EXPECT_EQ(tasks.size(), static_cast<size_t>(crashes) * kRequestsPerBurst);
  const auto all = cluster.client().tasks();
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->size(), tasks.size()) << "tasks that nobody asked for";

  const auto record = journal.read();
  EXPECT_TRUE(record.overlaps.empty()) << fmt::format("{}", fmt::join(record.overlaps, "\n"));
  size_t runs = 0, finished = 0;
  for (const uint64_t task : tasks) {
    const auto found = record.runs.find(std::to_string(task));
    ASSERT_NE(found, record.runs.end()) << "task " << task << " succeeded without a run";
    EXPECT_TRUE(found->second.back().ended) << "task " << task;
    expect_told(cluster.client(), task, found->second);
    runs += found->second.size();
    for (const auto& run : found->second) finished += run.ended;
  }
  fmt::print("{} crashes, {} tasks in {} runs, {} of them to the end, {} answers cut off\n",
             crashes, tasks.size(), runs, finished, in_doubt);
}

// Without this the tests here could pass because the journal is blind.
TEST_F(CoordinatorCrash, TheJournalShowsAnOverlap) {
  Cluster cluster({.nodes = 1, .units = 2});
  const Journal journal(cluster.folder());
  const auto gate = cluster.folder() / "gate";
  const auto wait = fmt::format("while [ ! -e {} ]; do sleep 0.1; done", gate.string());
  const auto first = cluster.client().submit({journal.task(wait, "same")});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(eventually([&] { return !journal.read().runs["same"].empty(); }));
  const auto second = cluster.client().submit({journal.task("true", "same")});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(cluster.client().wait(second->tasks[0]).value()["exit"]["code"], 99);
  EXPECT_EQ(journal.read().overlaps.size(), 1u);
  std::ofstream(gate) << "open";
  EXPECT_EQ(cluster.client().wait(first->tasks[0]).value()["state"], "succeeded");
}

TEST_F(CoordinatorCrash, ARestartAdoptsRunningTasks) {
  Cluster cluster({.nodes = 2, .units = 2, .lease_ms = 30'000});
  const Journal journal(cluster.folder());
  const auto gate = cluster.folder() / "gate";
  std::vector<uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    const auto submitted = cluster.client().submit(
        {journal.task(fmt::format("while [ ! -e {} ]; do sleep 0.1; done", gate.string()))});
    ASSERT_TRUE(submitted) << submitted.error().message;
    ids.push_back(submitted->tasks[0]);
  }
  ASSERT_TRUE(eventually([&] { return journal.read().runs.size() == ids.size(); }));
  for (int crash = 0; crash < 3; ++crash) {
    cluster.coordinator().kill_now();
    cluster.start_coordinator();
    ASSERT_TRUE(eventually([&] { return cluster.nodes_are_up(2); }));
    for (const uint64_t id : ids) {
      const auto task = cluster.client().show(id);
      ASSERT_TRUE(task) << task.error().message;
      EXPECT_FALSE(has_ended(*task)) << task->dump(2);
      EXPECT_EQ((*task)["attempt"], 1);
      // Even if the start was told to a coordinator that did not live to write it down.
      EXPECT_TRUE(eventually([&] { return (*cluster.client().show(id))["state"] == "running"; }));
    }
  }
  cluster.coordinator().kill_now();
  std::ofstream(gate) << "open";  // they end while there is no coordinator
  ASSERT_TRUE(eventually([&] {
    for (const auto& [key, runs] : journal.read().runs)
      if (!runs.back().ended) return false;
    return true;
  }));
  cluster.start_coordinator();
  for (const uint64_t id : ids) {
    const auto ended = cluster.client().wait(id);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
    EXPECT_EQ((*ended)["attempt"], 1);
  }
  const auto record = journal.read();
  for (const auto& [key, runs] : record.runs) EXPECT_EQ(runs.size(), 1u) << "task " << key;
  EXPECT_TRUE(record.overlaps.empty());
}

}  // namespace
}  // namespace tierpilot::test
