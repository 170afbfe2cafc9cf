// Tasks with shares on simulated nodes, and a keeper of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/sharing/share_keeper.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {

class ShareKeeperTest : public CoreTest {
 protected:
  ShareKeeperTest() {
    make_keeper("share");
    node_ = join_sharing("n1", 1);
  }
  void make_keeper(const char* policy) {
    settings_.share_policy = state_->settings.share_policy = policy;
    checkpoints_ = std::make_unique<Checkpoints>(*state_, *datasets_);
    keeper_ = std::make_unique<ShareKeeper>(*state_, *lifecycle_, *checkpoints_, nullptr);
    elastic_started_ = [this](const Task& task) { keeper_->started(task); };
    share_ended_ = [this](const Task& task, bool succeeded) { keeper_->ended(task, succeeded); };
    intake_ = std::make_unique<Intake>(
        *state_,
        [this](auto& specs, const auto& coming) { return keeper_->check_promises(specs, coming); },
        [] {});
  }
  void restart_coordinator() {
    flush();
    keeper_.reset();
    checkpoints_.reset();
    restart();
    make_keeper("share");
    keeper_->begin();
  }
  ~ShareKeeperTest() override {
    keeper_.reset();
    checkpoints_.reset();
  }
  std::shared_ptr<FakeNode> join_sharing(const std::string& name, size_t units,
                                         std::set<AttemptId> live = {}, double cores = 1) {
    auto link = std::make_shared<FakeNode>();
    auto facts = CoreTest::facts(name);
    facts.shared_units.assign(units, {"cpu", cores, 1 << 30});
    EXPECT_TRUE(membership_->join(facts, link, {}, live));
    return link;
  }
  void join_with_swap_room(const std::string& name, uint64_t room_bytes) {
    auto facts = CoreTest::facts(name);
    facts.shared_units.assign(1, {"cpu", 1, 1 << 30});
    facts.swap_room_bytes = room_bytes;
    EXPECT_TRUE(membership_->join(facts, std::make_shared<FakeNode>(), {}, {}));
  }
  static TaskSpec shared(const std::string& name, uint32_t milli, int64_t estimate_s = 0) {
    auto task = spec(name);
    task.share.wanted = true;
    task.share.milli = milli;
    task.share.estimate_ms = estimate_s * 1000;
    return task;
  }
  static TaskSpec promised(const std::string& name, uint32_t milli, int64_t estimate_s,
                           int64_t promise_s) {
    auto task = shared(name, milli, estimate_s);
    task.share.latency_sensitive = true;
    task.share.promise_ms = promise_s * 1000;
    return task;
  }
  static TaskSpec sensitive(const std::string& name, uint32_t milli) {
    auto task = shared(name, milli);
    task.share.latency_sensitive = true;
    return task;
  }
  // That it saves when it is asked to.
  void say_takes_checkpoints(uint64_t id) {
    JobPoint says;
    says.attempt = task(id).attempt;
    says.cpu_ns = 1;
    says.takes_checkpoints = true;
    keeper_->reported(task(id), says);
  }
  uint64_t accept(const TaskSpec& task) {
    const auto receipt = submit({task});
    EXPECT_TRUE(receipt) << receipt.error().message;
    return receipt ? receipt->first_task : 0;
  }
  // Its first attempt runs for 20 s, at three tenths of a core.
  void run_at_three_tenths(uint64_t id) {
    JobPoint used{.attempt = 1, .milli_units = 1000};
    for (int s = 1; s <= 20; ++s) {
      pass(1);
      used.cpu_ns = static_cast<uint64_t>(s) * 300'000'000;
      used.at_ms = clock_.wall_ms();
      keeper_->reported(task(id), used);
    }
  }
  const Task& task(uint64_t id) { return *state_->tasks.find(id); }
  // All that can be started runs.
  void pump() {
    keeper_->pump();
    flush();
    for (const auto& [id, task] : state_->tasks.all())
      if (task.state == TaskState::kAssigned) lifecycle_->started(task.node, {id, task.attempt});
  }
  void pass(int seconds) {
    tick(seconds);
    flush();
  }
  // Whatever the disk does.
  void tick(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      clock_.advance_ns(1'000'000'000);
      due_times_->heed();
      keeper_->tick();
    }
  }
  uint32_t milli(uint64_t id) { return task(id).share ? task(id).share->milli : 0; }

  std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<ShareKeeper> keeper_;
  std::shared_ptr<FakeNode> node_;
};

}  // namespace tierpilot::testing
