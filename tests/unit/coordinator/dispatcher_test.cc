// What may happen while a policy thinks, and while its decision is on its way to the disk.
#include "coordinator/core/dispatch/dispatcher.h"

#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "core_fixture.h"
#include "policies/placement/published/module.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class DispatcherTest : public CoreTest {
 protected:
  DispatcherTest() {
    PublishedSettings settings;
    settings.network.width = 16;
    settings.network.layers = 1;
    settings.network.feed_forward = 16;
    auto modules = placement_modules();
    modules.put(published_module(settings));
    auto host =
        PolicyHost::start({.modules = std::move(modules), .state_dir = {}, .active = "dqn"});
    if (!host) throw std::runtime_error(host.error().message);
    host_ = std::move(*host);
    oversight_ = std::make_unique<Oversight>(*store_, clock_);
    start_dispatcher();
  }
  // The decision thread posts into this object.
  ~DispatcherTest() override { host_.reset(); }

  // As after a restart: it knows of no decision before.
  void start_dispatcher() {
    dispatcher_ = std::make_unique<Dispatcher>(
        *state_, *host_, *oversight_,
        Dispatcher::Hooks{[this](auto work) { posts_.post(std::move(work)); },
                          [this](int64_t us, auto work) {
                            wait_us_ = static_cast<double>(us);
                            deadlines_.push_back(std::move(work));
                          }});
    dispatcher_->set_lifecycle(*lifecycle_);
  }

  TaskState state_of(uint64_t id) { return state_->tasks.find(id)->state; }
  bool run_until_assigned(uint64_t id) {
    return posts_.run_until([&] { return state_of(id) == TaskState::kAssigned; });
  }
  // The timers that are set go off; what they set is left.
  void ring() {
    for (const auto& timer : std::exchange(deadlines_, {})) timer();
  }
  void pass_deadlines() {
    clock_.advance_ns(settings_.decision_deadline_us * 1000);
    ring();
  }
  // The policy's answer to what was asked before has been handled.
  void let_the_policy_answer() {
    bool answered = false;
    View view;
    view.nodes.resize(1);
    view.nodes[0].candidate = true;
    // The dispatcher counts its own up from 1.
    host_->decide(UINT64_MAX, std::make_shared<const View>(view),
                  [&](auto) { posts_.post([&] { answered = true; }); });
    ASSERT_TRUE(posts_.run_until([&] { return answered; }));
  }

  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::vector<std::function<void()>> deadlines_;
  double wait_us_ = 0;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(DispatcherTest, TheNodeHearsOfATaskWhenTheDecisionIsOnDisk) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  EXPECT_THAT(node->started, IsEmpty());
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
  EXPECT_EQ(stored(id)->state, TaskState::kAssigned);
  const auto decisions = records::decisions(store_->reader(), id);
  ASSERT_TRUE(decisions) << decisions.error().message;
  ASSERT_THAT(*decisions, SizeIs(1));
  EXPECT_EQ(decisions->front().policy, "dqn");
  EXPECT_EQ(decisions->front().fallback, "");
}

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

TEST_F(DispatcherTest, ACancelWhileTheDecisionIsBeingWrittenReachesTheNodeAfterTheStart) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  lifecycle_->cancel(id, nullptr);
  const size_t before_the_start = node->cancelled.size();
  ASSERT_THAT(node->started, IsEmpty());
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
  ASSERT_GT(node->cancelled.size(), before_the_start);
  EXPECT_EQ(node->cancelled.back().first, (AttemptId{id, 1}));
}

TEST_F(DispatcherTest, ATaskCancelledWhileThePolicyThinksIsNotPlaced) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  lifecycle_->cancel(id, nullptr);
  let_the_policy_answer();
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
  EXPECT_THAT(node->started, IsEmpty());
  EXPECT_EQ(state_->registry.find("n")->assigned_units, 0u);
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

TEST_F(DispatcherTest, PastItsDeadlineAHeuristicDecidesOnceAndTheRecordSaysSo) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_THAT(deadlines_, SizeIs(1));
  pass_deadlines();
  EXPECT_EQ(state_of(id), TaskState::kAssigned);
  let_the_policy_answer();
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
  const auto decisions = records::decisions(store_->reader(), id);
  ASSERT_TRUE(decisions);
  ASSERT_THAT(*decisions, SizeIs(1));
  EXPECT_THAT(decisions->front().fallback, HasSubstr("no decision within"));
}

TEST_F(DispatcherTest, ADeadlineAfterTheAnswerChangesNothing) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  pass_deadlines();
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
}

TEST_F(DispatcherTest, ATimerThatWasSetForAnEarlierDecisionLetsTheNextOneItsTime) {
  auto node = join("n");
  const auto first = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(first));
  clock_.advance_ns(settings_.decision_deadline_us * 900);
  const auto second = submit({spec("b")})->first_task;
  dispatcher_->pump();
  ASSERT_THAT(deadlines_, SizeIs(1));
  clock_.advance_ns(settings_.decision_deadline_us * 100);
  ring();
  EXPECT_EQ(state_of(second), TaskState::kQueued);
  ASSERT_THAT(deadlines_, SizeIs(1)) << "set again for what is left";
  EXPECT_NEAR(wait_us_, 0.9 * static_cast<double>(settings_.decision_deadline_us), 1);
  pass_deadlines();
  EXPECT_EQ(state_of(second), TaskState::kAssigned);
}

// The action that was taken is the one that is learned from, and only that.
TEST_F(DispatcherTest, AnAnswerThatWaitsInTheQueueWhenItsDeadlinePassesIsNotLearnedFrom) {
  auto a = join("a");
  auto b = join("b");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  pass_deadlines();
  let_the_policy_answer();
  flush();
  EXPECT_EQ(a->started.size() + b->started.size(), 1u);
  dispatcher_->credits().ended({id, 1}, true);
  EXPECT_TRUE(host_->save().error().code == ErrorCode::kUnavailable) << "all facts were handled";
  EXPECT_EQ(host_->learner("dqn").decisions, 1u);
}

TEST_F(DispatcherTest, ANodeThatWentWhileThePolicyThoughtGetsNothing) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  membership_->disconnected(tickets_["n"]);
  let_the_policy_answer();
  flush();
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  EXPECT_THAT(node->started, IsEmpty());
}

TEST_F(DispatcherTest, AnAnswerThatNobodyWaitsForAnyMoreIsNotTakenForTheNextOne) {
  join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  membership_->disconnected(tickets_["n"]);
  pass_deadlines();
  ASSERT_EQ(state_of(id), TaskState::kQueued);
  // The first of the nodes now is not the one that was meant, and is no candidate.
  join("a");
  state_->registry.find("a")->assigned_units = 1000;
  join("n");
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  EXPECT_EQ(state_->tasks.find(id)->node, "n");
  flush();
  EXPECT_EQ(records::decisions(store_->reader(), id)->front().fallback, "");
}

TEST_F(DispatcherTest, WhatAnEarlierCoordinatorDecidedIsLearnedFrom) {
  join("n");
  const auto id = submit({spec("a"), spec("b")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id + 1));
  flush();
  start_dispatcher();
  clock_.advance_ns(2'000'000'000);
  dispatcher_->credits().ended({id, 1}, true);
  (void)host_->save();
  EXPECT_EQ(host_->learner("dqn").experiences, 1u);
  EXPECT_EQ(host_->learner("dqn").pending, 1u) << "the second one";
}

}  // namespace
}  // namespace tierpilot::testing
