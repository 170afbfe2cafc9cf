// Tasks that the policy keeps back for a full node (policies/held_tasks.h), in the coordinator.
#include <gmock/gmock.h>

#include "coordinator/core/dispatcher.h"
#include "coordinator/store/records.h"
#include "core_fixture.h"
#include "policies/dqn/weights.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kData = 32 << 20;

// The full node 'b' holds the data "d" and is done soon; to the idle 'a' it would take a second.
class HoldingTest : public CoreTest {
 protected:
  ~HoldingTest() override { host_.reset(); }

  void begin(PolicyMode mode = PolicyMode::kEnforce) {
    auto host = PolicyHost::start({.dqn = dqn_settings(), .state_dir = {}, .active = "dqn"});
    ASSERT_TRUE(host) << host.error().message;
    host_ = std::move(*host);
    oversight_ = std::make_unique<Oversight>(*store_, clock_);
    OversightSettings settings;
    settings.mode = mode;
    settings.guard.control_share = 0;
    ASSERT_TRUE(oversight_->begin(settings, {{"dqn", JudgedBy::kResponse}}));
    dispatcher_ = std::make_unique<Dispatcher>(
        *state_, *host_, *oversight_,
        Dispatcher::Hooks{[this](auto work) { posts_.post(std::move(work)); },
                          [this](int64_t, auto work) { timers_.push_back(std::move(work)); }});
    dispatcher_->set_lifecycle(*lifecycle_);
    join("a");
    join("b");
    for (const char* name : {"a", "b"})
      state_->registry.find(name)->fetches.add(static_cast<double>(kData), 1);
    add_dataset("d", kData, "b");
    state_->catalog.find("d")->replicas = {{"b", {1, kData, true, true}}};
    for (int i = 0; i < 4; ++i) {  // its two units, and its backlog
      const uint64_t id = submit({spec()})->first_task;
      busy_.push_back(assign(id, "b"));
    }
    state_->registry.find("b")->assigned_operations = 4e7;
  }
  DqnSettings dqn_settings() const {
    WeightsFile file;
    file.weights.others = delay_finish_externality();
    EXPECT_TRUE(save_weights(directory_ / "patient.weights", file));
    DqnSettings settings;
    settings.epsilon = 0;
    settings.weights = directory_ / "patient.weights";
    return settings;
  }
  uint64_t submit_reader() {
    auto wanted = spec();
    wanted.datasets = {{"d", false}};
    wanted.float_operations = 1e7;
    return submit({wanted})->first_task;
  }
  // Until the policy has answered all that it was asked.
  void pump() {
    dispatcher_->pump();
    flush();
    flush();
  }
  bool decided(uint64_t id) {
    return posts_.run_until([&] {
      const auto* task = state_->tasks.find(id);
      return task->state != TaskState::kQueued || state_->held.waits(id);
    });
  }
  void goes_where_the_heuristic_waits(PolicyMode mode) {
    begin(mode);
    const uint64_t id = submit_reader();
    pump();
    ASSERT_TRUE(decided(id));
    ASSERT_TRUE(state_->held.waits(id));
    EXPECT_TRUE(exit("b", busy_[0], success()));
    pump();
    ASSERT_TRUE(decided(id));
    EXPECT_EQ(node_of(id), "b");
  }
  std::string node_of(uint64_t id) { return state_->tasks.find(id)->node; }

  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::function<void()>> timers_;
  std::vector<AttemptId> busy_;
};

TEST_F(HoldingTest, ATaskWaitsForTheNodeThatHasItsDataAndGoesThere) {
  begin();
  const uint64_t id = submit_reader();
  pump();
  ASSERT_TRUE(decided(id));
  ASSERT_TRUE(state_->held.waits(id));
  EXPECT_EQ(state_->tasks.find(id)->state, TaskState::kQueued);
  EXPECT_THAT(state_->tasks.find(id)->reason, HasSubstr("'b'"));

  EXPECT_TRUE(exit("b", busy_[0], success()));
  pump();
  ASSERT_TRUE(decided(id));
  EXPECT_EQ(node_of(id), "b");
  EXPECT_TRUE(state_->held.empty());
}

TEST_F(HoldingTest, AtTheLatestItGoesElsewhereWhenThatWouldHaveBeenDone) {
  begin();
  const uint64_t id = submit_reader();
  pump();
  ASSERT_TRUE(decided(id));
  ASSERT_TRUE(state_->held.waits(id));
  clock_.advance_ns(60'000'000'000);
  for (const auto& timer : std::exchange(timers_, {})) timer();
  pump();
  ASSERT_TRUE(decided(id));
  EXPECT_EQ(node_of(id), "a");
}

TEST_F(HoldingTest, OthersPassIt) {
  begin();
  const uint64_t held = submit_reader();
  pump();
  ASSERT_TRUE(decided(held));
  const uint64_t other = submit({spec()})->first_task;
  pump();
  ASSERT_TRUE(decided(other));
  EXPECT_EQ(node_of(other), "a");
  EXPECT_TRUE(state_->held.waits(held));
}

TEST_F(HoldingTest, ACancelledOneIsForgotten) {
  begin();
  const uint64_t id = submit_reader();
  pump();
  ASSERT_TRUE(decided(id));
  lifecycle_->cancel(id, nullptr);
  flush();
  EXPECT_TRUE(state_->held.empty());
  for (const auto& timer : std::exchange(timers_, {})) timer();
}

TEST_F(HoldingTest, AnotherPolicyPlacesItAtOnce) {
  begin();
  const uint64_t id = submit_reader();
  pump();
  ASSERT_TRUE(decided(id));
  ASSERT_TRUE(host_->use("least-loaded"));
  pump();
  ASSERT_TRUE(decided(id));
  EXPECT_EQ(node_of(id), "a");
}

TEST_F(HoldingTest, InShadowTheHeuristicHolds) {
  goes_where_the_heuristic_waits(PolicyMode::kShadow);
}

TEST_F(HoldingTest, AnAdviserMayHoldWhatTheHeuristicWouldToo) {
  goes_where_the_heuristic_waits(PolicyMode::kAdvise);
}

TEST_F(HoldingTest, WhoeverDecidesNextIsAskedAnew) {
  begin();
  const uint64_t id = submit_reader();
  pump();
  ASSERT_TRUE(decided(id));
  ASSERT_TRUE(oversight_->set_mode("dqn", PolicyMode::kShadow));
  // What speaks for waiting is gone, which only somebody who is asked again can see.
  state_->registry.find("b")->assigned_operations = 4e12;
  pump();
  ASSERT_TRUE(decided(id));
  EXPECT_EQ(node_of(id), "a");
}

TEST_F(HoldingTest, AnOperatorMayForbidIt) {
  settings_.hold_tasks = false;
  restart();
  begin();
  const uint64_t id = submit_reader();
  pump();
  ASSERT_TRUE(decided(id));
  EXPECT_EQ(node_of(id), "a");
}

}  // namespace
}  // namespace tierpilot::testing
