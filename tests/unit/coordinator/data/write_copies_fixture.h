// A coordinator's core that waits for second copies, with nodes that only write down what they are
// asked.
#pragma once

#include <gmock/gmock.h>

#include "coordinator/core/data/write_copies.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {

inline constexpr ContentDigest kFirst{0, 1}, kNext{0, 2};

class WriteCopiesTest : public CoreTest {
 protected:
  void SetUp() override { begin_again(); }
  ~WriteCopiesTest() override { copies_.reset(); }

  // What the coordinator does at its start.
  void begin_again() {
    orders_.emplace(*state_);
    copies_ = std::make_unique<WriteCopies>(*state_, *orders_,
                                            [this](uint64_t task) { lifecycle_->copied(task); });
    lifecycle_->resume_copies(*copies_);
    datasets_ = std::make_unique<DatasetAdmin>(
        *state_, [] {},
        [this](const DatasetVersion& what, std::function<void()> done) {
          copies_->when_kept(what, std::move(done));
        });
  }
  void restart() {
    flush();
    datasets_.reset();
    copies_.reset();
    CoreTest::restart();
    begin_again();
  }
  std::shared_ptr<FakeNode> with_room(const std::string& name) {
    auto node = join(name);
    node->made = kFirst;
    state_->registry.find(name)->slow_free_bytes = 1 << 20;
    return node;
  }
  // Version 1 is on n and m.
  void add_for(uint32_t replicas) {
    n = with_room("n");
    std::optional<Result<Dataset>> made;
    datasets_->add(
        "", "d", ZeroSource{4096}, "n", [&](auto told) { made = std::move(told); }, replicas);
    ASSERT_TRUE(posts_.run_until([&] { return made.has_value(); }));
    ASSERT_TRUE(*made);
    m = with_room("m");
    membership_->replica_changed("m", "d", {1, 4096, false, true, true, kFirst});
  }
  uint64_t submit_writer() {
    auto writer = spec();
    writer.datasets = {{"d", true}};
    return submit({writer})->first_task;
  }
  static TaskExit wrote(uint64_t version = 2) {
    auto exit = success();
    exit.written = {{"d", version, 4096, kNext}};
    return exit;
  }
  // It has ended well, on n.
  uint64_t written_on_n(uint64_t version = 2) {
    const uint64_t task = submit_writer();
    attempt = assign(task, "n");
    lifecycle_->started("n", attempt);
    EXPECT_TRUE(exit("n", attempt, wrote(version)));
    return task;
  }
  // After its lease: n has version 2.
  void come_back_with_next() {
    silent_.clear();
    n = std::make_shared<FakeNode>();
    tickets_["n"] =
        *membership_->join(facts("n"), n, {{"d", {2, 4096, true, true, true, kNext}}}, {});
  }
  void answer(FakeNode& node, const Status& status = {}) {
    for (auto& [need, done] : std::exchange(node.keeps, {})) done(status);
    flush();
  }
  void pass(int64_t ms) {
    for (int64_t left_ms = ms; left_ms > 0; left_ms -= 100) {
      clock_.advance_ns(100'000'000);
      for (const auto& [name, ticket] : tickets_)
        if (silent_ != name) (void)membership_->renew(ticket);
      membership_->expire();
      copies_->tick();
    }
    flush();
  }
  uint64_t version() { return state_->catalog.find("d")->dataset.version; }
  TaskState state_of(uint64_t task) {
    flush();
    const auto* known = state_->tasks.find(task);
    return known ? known->state : stored(task)->state;
  }

  std::shared_ptr<FakeNode> n, m;
  AttemptId attempt;
  std::string silent_;  // a node that is not heard of any more
  std::optional<CopyOrders> orders_;
  std::unique_ptr<WriteCopies> copies_;
};

}  // namespace tierpilot::testing
