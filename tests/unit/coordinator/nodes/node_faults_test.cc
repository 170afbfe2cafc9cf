// What a node does to its tasks for reasons of its own is no fault of theirs.
#include <gmock/gmock.h>

#include "coordinator/core/dispatch/dispatcher.h"
#include "coordinator/store/records.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeFaults : public CoreTest {
 protected:
  NodeFaults() {
    auto host = PolicyHost::start({.state_dir = {}, .active = "least-loaded"});
    if (!host) throw std::runtime_error(host.error().message);
    host_ = std::move(*host);
    settings_.max_attempts = 1;
    settings_.backlog_units = 0;
    again();
  }
  ~NodeFaults() override { host_.reset(); }

  // As after a restart of the coordinator.
  void again() {
    dispatcher_.reset();
    restart();
    oversight_ = std::make_unique<Oversight>(*store_, clock_);
    dispatcher_ = std::make_unique<Dispatcher>(
        *state_, *host_, *oversight_,
        Dispatcher::Hooks{[this](auto work) { posts_.post(std::move(work)); },
                          [](int64_t, auto) {}});
    dispatcher_->set_lifecycle(*lifecycle_);
  }

  // Places what can be placed, and has the nodes hear of it.
  void place() {
    dispatcher_->pump();
    flush();
    flush();
  }
  static TaskExit could_not_start() {
    TaskExit exit;
    exit.how = TaskEnd::kCouldNotStart;
    exit.reason = "No space left on device";
    exit.node_fault = true;
    return exit;
  }
  // Time passes, and all nodes keep in touch.
  void renew_for(int64_t ns) {
    clock_.advance_ns(ns);
    for (const auto& [name, ticket] : tickets_) EXPECT_TRUE(membership_->renew(ticket));
    membership_->expire();
  }
  const Task& task(uint64_t id) { return *state_->tasks.find(id); }
  TaskState state_of(uint64_t id) { return stored(id)->state; }

  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(NodeFaults, ATaskThatAStoppingNodeRefusesGoesToAnotherOne) {
  auto stopping = join("a");
  stopping->refusal = Error{ErrorCode::kUnavailable, "the node is stopping"};
  const auto id = submit({spec("first"), spec("after", {"first"})})->first_task;
  place();
  ASSERT_THAT(stopping->started, SizeIs(1));
  EXPECT_EQ(state_of(id), TaskState::kQueued) << stored(id)->reason;
  auto other = join("b");
  place();
  EXPECT_THAT(other->started, SizeIs(1));
  EXPECT_EQ(state_of(id + 1), TaskState::kWaiting);
  // It gets nothing more, however little it has to do.
  for (int i = 0; i < 4; ++i) submit({spec()});
  place();
  EXPECT_THAT(stopping->started, SizeIs(1));
}

TEST_F(NodeFaults, ARefusedTaskWaitsWhereThereIsNoOtherNode) {
  auto only = join("a");
  only->refusal = Error{ErrorCode::kUnavailable, "the node is stopping"};
  const auto id = submit({spec()})->first_task;
  for (int i = 0; i < 5; ++i) place();
  EXPECT_THAT(only->started, SizeIs(1)) << "asked again and again";
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  // Restarted, it takes the task.
  membership_->disconnected(tickets_["a"]);
  auto anew = join("a", 8);
  place();
  EXPECT_THAT(anew->started, SizeIs(1));
  EXPECT_EQ(state_of(id), TaskState::kAssigned);
}

TEST_F(NodeFaults, WhatANodeCanNeverRunIsTheTasksFault) {
  auto node = join("a");
  node->refusal = Error{ErrorCode::kInvalid, "'a-b' and 'a_b' are one variable"};
  const auto id = submit({spec()})->first_task;
  place();
  EXPECT_EQ(state_of(id), TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("one variable"));
}

TEST_F(NodeFaults, TriesThatANodeEndedForItsOwnReasonsDoNotCount) {
  join("a");
  const auto id = submit({spec()})->first_task;
  TaskExit stopped;
  stopped.how = TaskEnd::kCancelled;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(exit("a", assign(id, "a"), stopped));
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  again();
  join("a");
  TaskExit lost;
  lost.how = TaskEnd::kLost;
  lost.reason = "its supervisor was killed";
  ASSERT_TRUE(exit("a", assign(id, "a"), lost));
  EXPECT_EQ(state_of(id), TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("try 1 of 1")) << "also after a restart";
}

// Its start was never heard: the connection broke.
TEST_F(NodeFaults, AStartThatNeverReachedTheNodeIsNoTry) {
  join("a");
  const auto id = submit({spec()})->first_task;
  for (int i = 0; i < 5; ++i) {
    assign(id, "a");
    membership_->disconnected(tickets_["a"]);
    join("a", 7, {});
    flush();
    ASSERT_EQ(state_of(id), TaskState::kQueued) << i;
  }
}

TEST_F(NodeFaults, ATaskThatANodeCannotStartIsTriedElsewhere) {
  join("a");
  join("b");
  auto id = submit({spec()})->first_task;
  const auto first = assign(id, "a");
  ASSERT_TRUE(exit("a", first, could_not_start()));
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  place();
  EXPECT_EQ(task(id).node, "b") << "and not where it was just tried";
  auto own = could_not_start();
  own.node_fault = false;
  ASSERT_TRUE(exit("b", {id, 2}, own));
  EXPECT_EQ(state_of(id), TaskState::kFailed);
}

TEST_F(NodeFaults, ANodeThatStartsNothingGetsNothingUntilOneTaskHasStarted) {
  auto broken = join("a");
  for (int i = 0; i < 3; ++i) {
    const auto id = submit({spec()})->first_task;
    ASSERT_TRUE(exit("a", assign(id, "a"), could_not_start()));
  }
  flush();
  const auto& node = *state_->registry.find("a");
  EXPECT_THAT(node.closed_because(), HasSubstr("No space left"));
  const auto events = records::node_events(store_->reader(), "a", 10);
  ASSERT_TRUE(events);
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ(events->front().what, "paused");
  EXPECT_THAT(events->front().why, HasSubstr("3 tasks in a row"));

  const auto id = submit({spec(), spec()})->first_task;
  place();
  EXPECT_THAT(broken->started, IsEmpty());
  // Later it is asked for one, and for others once that has started.
  renew_for(NodeHealth::kFirstPause_ns);
  place();
  place();
  ASSERT_THAT(broken->started, SizeIs(1));
  lifecycle_->started("a", broken->started.front());
  place();
  EXPECT_THAT(broken->started, SizeIs(2));
  EXPECT_EQ(node.closed_because(), "");
  EXPECT_EQ(records::node_events(store_->reader(), "a", 10)->front().what, "trusted again");
  EXPECT_NE(state_of(id), TaskState::kFailed);
}

TEST_F(NodeFaults, EachPauseIsLongerThanTheOneBefore) {
  join("a");
  auto& health = state_->registry.find("a")->health;
  for (uint64_t task = 1; task <= 3; ++task) health.failed_to_start(task, "why", 0);
  ASSERT_TRUE(health.paused());
  int64_t now_ns = NodeHealth::kFirstPause_ns;
  for (int64_t pause_ns = 2 * NodeHealth::kFirstPause_ns; pause_ns < NodeHealth::kLongestPause_ns;
       pause_ns *= 2) {
    ASSERT_TRUE(health.tick(now_ns));
    ASSERT_TRUE(health.on_trial());
    ASSERT_TRUE(health.failed_to_start(9, "why", now_ns));
    health.tick(now_ns + pause_ns - 1);
    ASSERT_TRUE(health.paused());
    now_ns += pause_ns;
  }
}

TEST_F(NodeFaults, OneTaskThatStartsNowhereClosesNoNode) {
  const std::vector<std::string> names{"a", "b", "c", "d"};
  for (const auto& name : names) join(name);
  const auto id = submit({spec()})->first_task;
  for (int round = 0; round < 3; ++round)
    for (const auto& name : names) ASSERT_TRUE(exit(name, assign(id, name), could_not_start()));
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  const auto next = submit({spec()})->first_task;
  place();
  EXPECT_EQ(task(next).state, TaskState::kAssigned) << "one that waits lets others pass";
  EXPECT_EQ(task(id).state, TaskState::kQueued);
}

TEST_F(NodeFaults, WhoWaitsForAnotherNodeIsToldWhatBecameOfTheLastTry) {
  join("a");
  const auto id = submit({spec()})->first_task;
  ASSERT_TRUE(exit("a", assign(id, "a"), could_not_start()));
  place();
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  EXPECT_EQ(task(id).reason,
            "waiting for a node that it was not tried on just now without success; try 1 ended "
            "with: No space left on device");
}

TEST_F(NodeFaults, WhoIsBoundToTheNodeIsToldItToo) {
  join("a");
  auto bound = spec();
  bound.node = "a";
  const auto id = submit({bound})->first_task;
  ASSERT_TRUE(exit("a", assign(id, "a"), could_not_start()));
  place();
  EXPECT_EQ(task(id).reason,
            "waiting to be tried again on node 'a'; try 1 ended with: No space left on device");
}

TEST_F(NodeFaults, AKilledWardenIsNoTryOfItsTasksButNotForEver) {
  join("a");
  const auto id = submit({spec()})->first_task;
  TaskExit lost;
  lost.how = TaskEnd::kLost;
  lost.node_fault = true;
  int tries = 0;
  while (state_->tasks.find(id) && ++tries < 100) ASSERT_TRUE(exit("a", assign(id, "a"), lost));
  EXPECT_GT(tries, 3);
  EXPECT_LT(tries, 100) << "a task may kill its warden itself";
}

// A full tier, a disk that fails, nodes that do not reach each other.
TEST_F(NodeFaults, DataThatANodeCannotServeOrKeepIsNoTryOfTheTaskButNotForEver) {
  join("a");
  state_->settings.max_attempts = 3;
  const auto id = submit({spec()})->first_task;
  TaskExit failed;
  failed.how = TaskEnd::kDataFailed;
  failed.reason = "slow tier: No space left on device";
  failed.node_fault = true;
  for (int round = 0; round < 10; ++round) ASSERT_TRUE(exit("a", assign(id, "a"), failed));
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  int tries = 10;
  while (state_->tasks.find(id) && ++tries < 100) ASSERT_TRUE(exit("a", assign(id, "a"), failed));
  EXPECT_LT(tries, 100) << "its data may be lost";
  EXPECT_THAT(stored(id)->reason, HasSubstr("No space left on device"));
}

TEST_F(NodeFaults, DataThatATaskMayNotHaveIsATryOfItsOwn) {
  join("a");
  state_->settings.max_attempts = 3;
  const auto id = submit({spec()})->first_task;
  TaskExit failed;
  failed.how = TaskEnd::kDataFailed;
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(exit("a", assign(id, "a"), failed));
  EXPECT_EQ(state_of(id), TaskState::kFailed);
}

TEST_F(NodeFaults, AnHeirJoinsAtOnceAndTellsWhatEndedBefore) {
  join("a", 1);
  const auto ids = submit({spec(), spec()})->first_task;
  const auto ended = assign(ids, "a"), died = assign(ids + 1, "a");
  for (const auto attempt : {ended, died}) lifecycle_->started("a", attempt);
  state_->settings.max_attempts = 3;
  auto heir = facts("a", 3);
  heir.predecessors = {1, 2};
  const auto joined = membership_->join(heir, std::make_shared<FakeNode>(), {}, {ended});
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(task(ended.task).state, TaskState::kRunning);
  ASSERT_TRUE(exit("a", ended, failure(3)));
  EXPECT_EQ(state_of(ended.task), TaskState::kFailed);
  EXPECT_EQ(stored(ended.task)->reason, "exit status 3");
  // One that does not know the instance that joined before waits for its lease.
  assign(submit({spec()})->first_task, "a");
  auto stranger = facts("a", 4);
  stranger.predecessors = {1};
  EXPECT_FALSE(membership_->join(stranger, std::make_shared<FakeNode>(), {}, {}));
}

// Each unit is remembered: a node that names four billion of them must not take all memory.
TEST_F(NodeFaults, ANodeThatClaimsUnitsWithoutEndIsRefused) {
  auto boaster = facts("a");
  boaster.units = UINT32_MAX;
  const auto joined = membership_->join(boaster, std::make_shared<FakeNode>(), {}, {});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(joined.error().message, HasSubstr("4294967295"));
}

// A node remembers what ended until it is told that it need not.
TEST_F(NodeFaults, WhatIsTriedAgainIsReleasedToo) {
  auto a = join("a");
  const auto attempt = assign(submit({spec()})->first_task, "a");
  ASSERT_TRUE(exit("a", attempt, could_not_start()));
  EXPECT_THAT(a->released, ::testing::ElementsAre(attempt));
  ASSERT_TRUE(exit("a", {attempt.task, attempt.attempt + 5}, could_not_start()));
  EXPECT_THAT(a->released, SizeIs(2)) << "nobody waits for that one";
}

}  // namespace
}  // namespace tierpilot::testing
