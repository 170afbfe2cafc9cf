// Which tasks are placed now, what of that is written down, and what the node is told.
#include "coordinator/core/dispatch/dispatcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/store/records.h"
#include "dispatcher_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(DispatcherTest, AHeuristicDecidesAtOnceAndOfManyTasksAFewAtATime) {
  ASSERT_TRUE(host_->use("least-loaded"));
  for (int i = 0; i < 50; ++i) join("n" + std::to_string(i));
  const auto receipt = submit(std::vector<TaskSpec>(50, spec()));
  dispatcher_->pump();
  const size_t at_once = 50 - state_->tasks.queue().size();
  EXPECT_GE(at_once, 2u);
  EXPECT_LT(at_once, 50u);
  ASSERT_TRUE(posts_.run_until([&] { return state_->tasks.queue().empty(); }));
  flush();
  for (uint64_t id = receipt->first_task; id < receipt->first_task + 50; ++id) {
    const auto decisions = records::decisions(store_->reader(), id);
    ASSERT_TRUE(decisions) << decisions.error().message;
    ASSERT_THAT(*decisions, SizeIs(1));
    EXPECT_EQ(decisions->front().policy, "least-loaded");
    EXPECT_EQ(decisions->front().fallback, "");
    EXPECT_GT(decisions->front().decide_ns, 0);
  }
  EXPECT_THAT(deadlines_, IsEmpty());
}

TEST_F(DispatcherTest, OfManyNodesTheChosenOneAndTheBestAreWrittenDown) {
  for (const uint32_t most : {3u, 6u, 20u}) {
    state_->settings.recorded_nodes = most;
    for (int i = 0; i < 6 && most == 3; ++i) join("n" + std::to_string(i));
    const auto id = submit({spec("a")})->first_task;
    dispatcher_->pump();
    ASSERT_TRUE(run_until_assigned(id));
    flush();
    const auto decisions = records::decisions(store_->reader(), id);
    ASSERT_TRUE(decisions && decisions->size() == 1);
    const auto& candidates = decisions->front().candidates;
    EXPECT_THAT(candidates, SizeIs(std::min(most, 6u)));
    EXPECT_EQ(decisions->front().considered, 6u);
    EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [&](const auto& candidate) {
      return candidate.node == state_->tasks.find(id)->node;
    }));
  }
}

TEST_F(DispatcherTest, ReadersAreSpreadOverTheNodesThatHoldTheDataInFastMemory) {
  ASSERT_TRUE(host_->use("least-loaded"));
  for (const char* name : {"fast1", "fast2", "slow1", "slow2"}) join(name);
  add_dataset("d", 1 << 20, "slow1");
  for (const char* name : {"fast1", "fast2", "slow2"})
    membership_->replica_changed(name, "d", {1, 1 << 20, name[0] == 'f', name[0] == 's'});
  std::vector<std::shared_ptr<FakeNode>> readers;
  for (int i = 0; i < 16; ++i) {
    readers.push_back(join("reader" + std::to_string(i)));
    auto task = spec();
    task.node = "reader" + std::to_string(i);
    task.datasets = {{"d", false}};
    submit({task});
  }
  dispatcher_->pump();
  ASSERT_TRUE(posts_.run_until([&] { return state_->tasks.queue().empty(); }));
  flush();
  std::set<std::string> asked_first;
  for (const auto& reader : readers) {
    ASSERT_THAT(reader->assignments, SizeIs(1));
    const auto& sources = reader->assignments[0].datasets.at(0).sources;
    ASSERT_THAT(sources, SizeIs(4));
    EXPECT_THAT(std::vector(sources.begin(), sources.begin() + 2),
                UnorderedElementsAre("unix:/fast1", "unix:/fast2"));
    asked_first.insert(sources[0]);
  }
  EXPECT_THAT(asked_first, SizeIs(2));
}

// An assignment has to fit a message, however many nodes hold the data.
TEST_F(DispatcherTest, AReaderIsToldOfTheBestHoldersOnly) {
  auto reader = join("reader");
  add_dataset("d", 1 << 20, "reader");
  membership_->replica_changed("reader", "d", {1, 1 << 20, false, false});
  for (int i = 0; i < 20; ++i) {
    const auto name = "holder" + std::to_string(i);
    join(name);
    membership_->replica_changed(name, "d", {1, 1 << 20, i >= 10, i < 10});
  }
  auto task = spec();
  task.node = "reader";
  task.datasets = {{"d", false}};
  const auto id = submit({task})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  flush();
  ASSERT_THAT(reader->assignments, SizeIs(1));
  const auto& sources = reader->assignments[0].datasets.at(0).sources;
  EXPECT_THAT(sources, SizeIs(kMostSources));
  std::set<std::string> fast;
  for (int i = 10; i < 20; ++i) fast.insert("unix:/holder" + std::to_string(i));
  EXPECT_EQ(std::set<std::string>(sources.begin(), sources.begin() + 10), fast);
}

TEST_F(DispatcherTest, ATaskThatNoNodeUpCanHoldLetsOthersPass) {
  // Admitted while nobody knew how large nodes are.
  auto large = spec("large");
  large.units = 3;
  const auto waits = submit({large})->first_task;
  const auto goes = submit({spec("small")})->first_task;
  auto node = join("n");
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(goes));
  EXPECT_EQ(state_of(waits), TaskState::kQueued);
  EXPECT_NE(state_->tasks.find(waits)->reason.find("large enough"), std::string::npos);
}

// However many they are.
TEST_F(DispatcherTest, ThoseOfANodeThatIsDrainedLetOthersPassAndGoThereOnceItIsOpen) {
  join("a");
  join("b");
  state_->registry.find("b")->order.kind = NodeOrder::Kind::kDrained;
  auto bound = spec("");
  bound.node = "b";
  const auto all = submit(std::vector<TaskSpec>(1000, bound));
  ASSERT_TRUE(all) << all.error().message;
  const auto first = all->first_task;
  const auto goes = submit({spec("goes")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(goes));
  EXPECT_EQ(state_->tasks.find(goes)->node, "a");
  EXPECT_EQ(state_of(first), TaskState::kQueued);
  const auto next = submit({spec("next")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(next));

  state_->registry.find("b")->order.kind = {};
  clock_.advance_ns(1'000'000'000);
  ring();
  ASSERT_TRUE(run_until_assigned(first));
  EXPECT_EQ(state_->tasks.find(first)->node, "b");
}

// Also where more of them come all the time.
TEST_F(DispatcherTest, WhoIsAtTheHeadIsLookedAtAgainInTime) {
  join("a");
  join("b");
  state_->registry.find("b")->order.kind = NodeOrder::Kind::kDrained;
  auto bound = spec();
  bound.node = "b";
  std::optional<uint64_t> first;
  for (int block = 0; block < 20; ++block) {
    const auto more = submit(std::vector<TaskSpec>(300, bound));
    ASSERT_TRUE(more) << more.error().message;
    if (!first) first = more->first_task;
    for (int look = 0; look < 3; ++look) dispatcher_->pump();
    clock_.advance_ns(50'000'000);
  }
  EXPECT_LE(deadlines_.size(), 1U) << "one timer at a time";
  state_->registry.find("b")->order.kind = {};
  for (int step = 0; step < 20; ++step) {
    clock_.advance_ns(100'000'000);
    ring();
  }
  EXPECT_TRUE(run_until_assigned(*first));
}

TEST_F(DispatcherTest, ANodeIsSeenWithWhatItWasGivenAndHowFastItWas) {
  auto node = join("n");
  auto work = spec("a");
  work.float_operations = 3e9;
  const auto id = submit({work, spec("b")})->first_task;
  const auto seen = [&] { return make_view(*state_, *state_->tasks.find(id + 1)).view.nodes[0]; };
  EXPECT_EQ(seen().assigned_operations, 0);
  EXPECT_EQ(seen().rates.operations_per_s, 0) << "nothing ran there yet";
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  EXPECT_EQ(seen().assigned_operations, 3e9);
  flush();
  auto end = success();
  end.wall_ns = 2'000'000'000;
  ASSERT_TRUE(exit("n", {id, 1}, end));
  EXPECT_EQ(seen().assigned_operations, 0);
  EXPECT_DOUBLE_EQ(seen().rates.operations_per_s, 1.5e9);
}

}  // namespace
}  // namespace tierpilot::testing
