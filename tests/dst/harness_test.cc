// The harness itself: it must be able to see what it looks for, and say the same twice.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "tests/dst/shrink.h"
#include "tests/dst/world.h"

namespace tierpilot::dst {
namespace {

std::filesystem::path scratch() {
  return std::filesystem::temp_directory_path() / fmt::format("tierpilot-dst-test-{}", ::getpid());
}

std::vector<std::string> history(uint64_t seed, const Kinds& included) {
  std::vector<std::string> lines;
  WorldOptions options;
  options.included = included;
  options.directory = scratch();
  options.tell = [&](const std::string& line) { lines.push_back(line); };
  const auto verdict = World(seed, make_plan(seed, included), options).run();
  if (verdict) lines.push_back(verdict->what);
  std::filesystem::remove_all(scratch());
  return lines;
}

class Harness : public testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
};

TEST_F(Harness, TheSameSeedGivesTheSameHistory) {
  size_t lines = 0;
  for (const uint64_t seed : {3, 11, 12}) {
    const auto first = history(seed, {"writes", "removes"});
    lines += first.size();
    EXPECT_EQ(first, history(seed, {"writes", "removes"}));
  }
  EXPECT_GT(lines, 30u) << "something happens in them";
  EXPECT_NE(history(3, {}), history(4, {}));
}

TEST(Network, LosesWhatIsOnItsWayAndIsHeldByItsConnection) {
  dst::Loop loop;
  const auto held = std::make_shared<int>(1);
  {
    dst::Network network(loop, 1);
    const auto connection =
        network.connect(0, std::make_shared<dst::Life>(), std::make_shared<dst::Life>());
    connection->send(dst::Way::kUp, [connection, held] {});
    connection->on_closed_at_coordinator = [connection, held] {};
    EXPECT_EQ(held.use_count(), 3);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Network, AResetLosesWhatIsOnItsWayAndBothEndsHearOfIt) {
  dst::Loop loop;
  dst::Network network(loop, 1);
  const auto life = std::make_shared<dst::Life>();
  const auto connection = network.connect(0, life, life), other = network.connect(1, life, life);
  int came = 0, closed = 0, of_others = 0;
  connection->on_closed_at_coordinator = connection->on_closed_at_node = [&] { ++closed; };
  other->on_closed_at_coordinator = other->on_closed_at_node = [&] { ++of_others; };
  connection->send(dst::Way::kUp, [&] { ++came; });
  network.reset(0);
  connection->send(dst::Way::kDown, [&] { ++came; });
  other->send(dst::Way::kUp, [&] { ++of_others; });
  while (loop.step(dst::kSecond)) {
  }
  EXPECT_EQ(came, 0);
  EXPECT_EQ(closed, 2);
  EXPECT_EQ(of_others, 1) << "it goes on";
}

TEST(Judge, SeesAnOverlap) {
  Judge judge({});
  judge.processes().began({1, 1, 0}, 0);
  judge.processes().ended({1, 1, 0});
  judge.processes().began({1, 2, 1}, 0);
  EXPECT_FALSE(judge.verdict());
  judge.processes().began({1, 3, 2}, 0);
  ASSERT_TRUE(judge.verdict());
  EXPECT_EQ(judge.verdict()->invariant, "overlap");
}

TEST(Judge, SeesATaskRunAgainAfterItsEndWasOnDiskAndItsNodeWasWaitedFor) {
  const auto runs_again = [](bool leased, bool unsure, uint64_t gang) {
    Judge judge({});
    judge.processes().is_leased_since = [&](int, int64_t) { return leased; };
    if (unsure) judge.processes().unsure(1, 10);
    judge.processes().began({1, 1, 0}, 0, gang);
    judge.processes().ended({1, 1, 0}, true);
    judge.processes().end_kept({1, 1, 0}, 0);
    judge.processes().began({1, 2, 1}, 0, gang);
    return judge.verdict() ? judge.verdict()->invariant : "";
  };
  EXPECT_EQ(runs_again(true, false, 0), "ran-again");
  EXPECT_EQ(runs_again(false, false, 0), "") << "nobody waits for a node whose lease has ended";
  EXPECT_EQ(runs_again(true, true, 0), "") << "a machine that stood still knows nothing yet";
  EXPECT_EQ(runs_again(true, false, 7), "") << "with its gang";
}

Task told(uint64_t id, TaskState state) {
  Task task;
  task.id = id;
  task.attempt = 1;
  task.node = "n1";
  task.state = state;
  task.spec.argv = {"work", "1", "0"};
  return task;
}

TEST(Judge, SeesASuccessThatNeverRan) {
  for (const bool well : {false, true}) {
    Judge judge({});
    judge.processes().began({1, 1, 0}, 0);
    judge.processes().ended({1, 1, 0}, well);
    judge.ended(told(1, TaskState::kSucceeded));
    EXPECT_EQ(judge.verdict().has_value(), !well);
    if (!well) EXPECT_EQ(judge.verdict()->invariant, "lost-submit");
  }
}

TEST(Judge, SeesAnEndThatBecomesAnotherOneAndARunAfterIt) {
  Judge judge({});
  judge.processes().began({1, 1, 0}, 0);
  judge.processes().ended({1, 1, 0}, true);
  judge.ended(told(1, TaskState::kSucceeded));
  judge.ended(told(1, TaskState::kSucceeded));
  EXPECT_FALSE(judge.verdict());
  judge.ended(told(1, TaskState::kCancelled));
  ASSERT_TRUE(judge.verdict());
  EXPECT_EQ(judge.verdict()->invariant, "undone-end");

  Judge other({});
  other.processes().is_told = [](uint64_t task) { return task == 1; };
  other.processes().began({2, 1, 0}, 0);
  EXPECT_FALSE(other.verdict());
  other.processes().began({1, 2, 0}, 0);
  ASSERT_TRUE(other.verdict());
  EXPECT_EQ(other.verdict()->invariant, "ran-again");
}

TEST(Judge, SeesATaskThatBeginsBeforeThoseItStandsBehind) {
  for (const bool gang : {false, true})
    for (const bool well : {false, true}) {
      Judge judge({});
      TaskSpec first;
      first.name = "first";
      first.argv = {"work", "1", "0"};
      if (gang) first.gang.ranks = 2;
      auto second = first;
      second.name = "second";
      second.gang = {};
      second.after = {"first"};
      judge.acknowledged({.first_task = 1, .task_count = 2}, {first, second});
      for (uint64_t rank = 0; rank < (gang ? 2 : 1); ++rank) {
        const dst::Run run{gang ? 11 + rank : 1, 1, static_cast<int>(rank)};
        judge.processes().began(run, 0, gang ? 1 : 0);
        judge.processes().ended(run, well || (gang && rank == 0));
      }
      EXPECT_FALSE(judge.verdict());
      judge.processes().began({2, 1, 0}, 0);
      EXPECT_EQ(judge.verdict().has_value(), !well);
      if (!well) EXPECT_EQ(judge.verdict()->invariant, "too-soon");
    }
}

TEST(Judge, SeesAReaderThatIsGivenLessThanWhoSubmittedItKnewOf) {
  Judge judge({});
  TaskSpec reader;
  reader.name = "reader";
  reader.argv = {"work", "1", "0"};
  reader.datasets = {{"d", false}};
  const Digest first = judge.contents().made("d", 1), second = judge.contents().made("d", 2);
  judge.dataset_added("d", 1, first);
  const auto before = judge.seen();
  judge.acknowledged({.first_task = 1, .task_count = 1}, {reader}, before);
  judge.dataset_added("d", 2, second);
  judge.acknowledged({.first_task = 2, .task_count = 1}, {reader}, judge.seen());
  judge.read({1, 1, 0}, "d", 1, first);
  judge.read({2, 1, 0}, "d", 2, second);
  EXPECT_FALSE(judge.verdict());
  judge.read({2, 1, 0}, "d", 1, first);
  ASSERT_TRUE(judge.verdict());
  EXPECT_EQ(judge.verdict()->invariant, "stale-read");
}

TEST(Judge, SeesALostWrite) {
  Judge judge({});
  const Digest first = judge.contents().made("d", 1);
  const dst::Run a{1, 1, 0}, b{2, 1, 1};
  for (const dst::Run& run : {a, b}) {
    judge.processes().began(run, 0);
    judge.processes().ended(run, true);
    judge.committed(run, "d", run.task + 1, judge.contents().written(first, run));
    Task task;
    task.id = run.task;
    task.attempt = run.attempt;
    task.node = fmt::format("n{}", run.node + 1);
    task.state = TaskState::kSucceeded;
    task.spec.argv = {"work", "1", "0"};
    task.spec.datasets = {{"d", true}};
    judge.ended(task);
  }
  EXPECT_FALSE(judge.verdict());
  judge.check_writes("d", judge.published("d", 3));  // the second one was made without the first
  ASSERT_TRUE(judge.verdict());
  EXPECT_EQ(judge.verdict()->invariant, "lost-write");
}

TEST(Judge, KnowsADatasetWhoseRemovalMayYetBeRefused) {
  Judge judge({});
  judge.dataset_added("d", 1, judge.contents().made("d", 1));
  judge.removal_began("d");
  EXPECT_TRUE(judge.current().empty());
  ASSERT_TRUE(judge.newest("d"));
  EXPECT_EQ(judge.newest("d")->version, 1u);
  judge.lost_by_damage("d");  // meanwhile
  judge.removal_ended("d", false);
  EXPECT_TRUE(judge.is_lost("d"));
  EXPECT_TRUE(judge.current().empty()) << "its loss was told";
  judge.removal_ended("d", true);
  EXPECT_FALSE(judge.newest("d"));
}

TEST(Judge, ForgivesWhatARankOfAGangThatHasEndedReadsOfADatasetThatWasRemovedSince) {
  Judge judge({});
  const auto old = judge.contents().made("d", 1);
  judge.dataset_added("d", 1, old);
  judge.processes().began({8, 2, 1}, 0, 7);
  judge.processes().ended({8, 2, 1}, false);
  Task gang;
  gang.id = 7;
  gang.state = TaskState::kFailed;
  gang.reason = "task 6 has failed";
  gang.spec.argv = {"work", "1", "0"};
  gang.spec.gang.ranks = 2;
  judge.ended(gang);
  judge.removal_ended("d", true);
  judge.dataset_added("d", 1, judge.contents().made("d", 2));
  judge.read({8, 1, 0}, "d", 1, old);
  EXPECT_FALSE(judge.verdict());
}

TEST(Judge, ForgivesWhatOneThatHasEndedReadsOfADatasetThatWasRemovedSince) {
  const auto read_after = [](bool ended, bool removed) {
    Judge judge({});
    const auto old = judge.contents().made("d", 1);
    judge.dataset_added("d", 1, old);
    judge.processes().began({7, 1, 0}, 0);
    judge.processes().ended({7, 1, 0}, true);
    if (ended) judge.ended(told(7, TaskState::kSucceeded));
    if (removed) judge.removal_ended("d", true);
    judge.dataset_added(removed ? "d" : "e", 1, judge.contents().made("d", 2));
    judge.read({7, 1, 0}, removed ? "d" : "e", 1, old);
    return judge.verdict().has_value();
  };
  EXPECT_FALSE(read_after(true, true));
  EXPECT_TRUE(read_after(false, true)) << "it runs";
  EXPECT_TRUE(read_after(true, false)) << "nothing was removed";
}

TEST(Shrink, LeavesWhatItNeeds) {
  Plan plan;
  for (uint64_t i = 0; i < 40; ++i) plan.push_back({.number = i});
  const auto fails = [](const Plan& some) {
    int needed = 0;
    for (const auto& action : some) needed += action.number == 7 || action.number == 31;
    return needed == 2;
  };
  const Plan shortest = shrink(plan, fails, 400);
  ASSERT_EQ(shortest.size(), 2u);
  EXPECT_EQ(shortest[0].number, 7u);
  EXPECT_EQ(shortest[1].number, 31u);
}

}  // namespace
}  // namespace tierpilot::dst
