#include "coordinator/core/membership/node_admin.h"

#include <gmock/gmock.h>

#include "coordinator/core/dispatch/next_task.h"
#include "coordinator/store/records.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Kind = NodeOrder::Kind;

class NodeAdminTest : public CoreTest {
 protected:
  Status order(const std::string& node, Kind kind, int64_t within_ms = 0) {
    return settled([&](auto done) { admin().order(node, kind, within_ms, "tester", done); });
  }
  Status remove(const std::string& node) {
    return settled([&](auto done) { admin().remove(node, "tester", done); });
  }
  template <class Ask>
  Status settled(Ask ask) {
    std::optional<Status> status;
    ask([&](Status told) { status = std::move(told); });
    EXPECT_TRUE(posts_.run_until([&] { return status.has_value(); }));
    return *status;
  }
  NodeAdmin& admin() {
    if (!admin_) admin_ = std::make_unique<NodeAdmin>(*state_);
    return *admin_;
  }
  void restart_all() {
    admin_.reset();
    restart();
  }
  const NodeRecord& node(const std::string& name) { return *state_->registry.find(name); }
  bool is_placed() { return next_task(*state_, gangs_->policies()).task != nullptr; }

  std::unique_ptr<NodeAdmin> admin_;
};

TEST_F(NodeAdminTest, ACordonedNodeGetsNothingAlsoAfterARestart) {
  auto link = join("a");
  const auto id = submit({spec(), spec()})->first_task;
  const auto running = assign(id, "a");
  ASSERT_TRUE(order("a", Kind::kCordoned));
  EXPECT_FALSE(is_placed());
  EXPECT_THAT(link->cancelled, IsEmpty()) << "what it has goes on";
  EXPECT_TRUE(exit("a", running, success()));
  restart_all();
  join("a", 8);
  EXPECT_FALSE(is_placed());
  EXPECT_THAT(node("a").closed_because(), HasSubstr("cordoned by tester"));
  ASSERT_TRUE(order("a", Kind::kNone));
  EXPECT_TRUE(is_placed());
  restart_all();
  join("a", 8);
  EXPECT_TRUE(is_placed());
  EXPECT_EQ(order("b", Kind::kCordoned).error().code, ErrorCode::kNotFound);
}

TEST_F(NodeAdminTest, AnOrderThatCannotBeWrittenIsNone) {
  auto link = join("a");
  const auto id = submit({spec(), spec()})->first_task;
  assign(id, "a");
  store_->write([](Db& db) { return db.execute("ALTER TABLE node_orders RENAME TO away"); },
                nullptr);
  EXPECT_FALSE(order("a", Kind::kDrained));
  EXPECT_EQ(node("a").closed_because(), "");
  EXPECT_THAT(link->cancelled, IsEmpty());
  EXPECT_TRUE(is_placed());
  store_->write([](Db& db) { return db.execute("ALTER TABLE away RENAME TO node_orders"); },
                nullptr);
  ASSERT_TRUE(order("a", Kind::kCordoned));
  EXPECT_FALSE(is_placed());
}

TEST_F(NodeAdminTest, ADrainHandsBackWhatDoesNotEndInTime) {
  auto link = join("a");
  const auto id = submit({spec(), spec()})->first_task;
  const auto runs = assign(id, "a"), waits = assign(id + 1, "a");
  lifecycle_->started("a", runs);
  ASSERT_TRUE(order("a", Kind::kDrained, 5000));
  EXPECT_THAT(link->cancelled, ElementsAre(Pair(waits, HasSubstr("drained"))));
  TaskExit back;
  back.how = TaskEnd::kCancelled;
  ASSERT_TRUE(exit("a", waits, back));
  EXPECT_EQ(stored(waits.task)->state, TaskState::kQueued);
  clock_.step_wall_ms(3'600'000);
  clock_.advance_ns(4'999'000'000);
  admin().tick();
  EXPECT_THAT(link->cancelled, SizeIs(1));
  clock_.advance_ns(2'000'000);
  admin().tick();
  admin().tick();
  EXPECT_THAT(link->cancelled, SizeIs(2)) << "asked once";
  // A connection that broke may have lost that.
  membership_->disconnected(tickets_["a"]);
  auto again = join("a", 7, {runs});
  admin().tick();
  EXPECT_THAT(again->cancelled, ElementsAre(Pair(runs, HasSubstr("drained"))));
  ASSERT_TRUE(exit("a", runs, back));
  EXPECT_EQ(stored(runs.task)->state, TaskState::kQueued);
  EXPECT_EQ(stored(runs.task)->forgiven, 1u);
  EXPECT_THAT(node("a").closed_because(), HasSubstr("no task is left"));
}

TEST_F(NodeAdminTest, ANodeIsRemovedOnlyWhenNothingDependsOnIt) {
  join("a");
  join("b");
  EXPECT_THAT(remove("a").error().message, HasSubstr("is up"));
  add_dataset("d", 4096, "a");
  auto bound = spec();
  bound.node = "a";
  const auto id = submit({bound})->first_task;
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  EXPECT_THAT(remove("a").error().message, HasSubstr("task 1 is bound to it"));
  bool cancelled = false;
  lifecycle_->cancel(id, [&](Status) { cancelled = true; });
  ASSERT_TRUE(posts_.run_until([&] { return cancelled; }));
  EXPECT_THAT(remove("a").error().message, HasSubstr("home of dataset 'd'"));
  EXPECT_TRUE(remove("b"));
  EXPECT_EQ(state_->registry.find("b"), nullptr);
  EXPECT_FALSE(state_->units.is_known("b/cpu/0"));
  EXPECT_EQ(remove("b").error().code, ErrorCode::kNotFound);
  restart_all();
  EXPECT_THAT(state_->registry.slots().names(), ElementsAre("a"));
  EXPECT_FALSE(state_->units.is_known("b/cpu/0"));
  EXPECT_TRUE(state_->units.is_known("a/cpu/0"));
  join("b");  // as a new one
  EXPECT_EQ(node("b").closed_because(), "");
}

TEST_F(NodeAdminTest, ARemovalThatCouldNotBeWrittenForgetsNothing) {
  join("a");
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  store_->write([](Db& db) { return db.execute("ALTER TABLE nodes RENAME TO away"); }, nullptr);
  flush();
  EXPECT_FALSE(remove("a"));
  EXPECT_TRUE(state_->registry.find("a"));
  EXPECT_TRUE(state_->units.is_known("a/cpu/0"));
  store_->write([](Db& db) { return db.execute("ALTER TABLE away RENAME TO nodes"); }, nullptr);
  flush();
  EXPECT_TRUE(remove("a"));
  EXPECT_FALSE(state_->registry.find("a"));
}

TEST_F(NodeAdminTest, ANodeDoesNotJoinWhileItsRemovalIsWritten) {
  join("a");
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  std::optional<Status> removed;
  admin().remove("a", "tester", [&](Status told) { removed = std::move(told); });
  const auto early = membership_->join(facts("a", 8), std::make_shared<FakeNode>(), {}, {});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kConflict);
  ASSERT_TRUE(posts_.run_until([&] { return removed.has_value(); }));
  EXPECT_TRUE(*removed);
  join("a", 8);
}

TEST_F(NodeAdminTest, ATaskIsNotTakenForANodeWhileItsRemovalIsWritten) {
  join("a");
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  auto bound = spec();
  bound.node = "a";
  hold_disk();
  std::optional<Status> removed;
  admin().remove("a", "tester", [&](Status told) { removed = std::move(told); });
  std::optional<Result<SubmitReceipt>> answer;
  intake_->submit({"tester", "r"}, {bound}, [&](auto result) { answer = std::move(result); });
  release_disk();
  EXPECT_TRUE(removed && *removed);
  ASSERT_TRUE(answer && !*answer);
  EXPECT_THAT(answer->error().message, HasSubstr("just being removed"));
}

TEST_F(NodeAdminTest, ANodeIsNotRemovedWhileATaskThatIsBoundToItIsWritten) {
  join("a");
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  auto bound = spec();
  bound.node = "a";
  hold_disk();
  std::optional<Result<SubmitReceipt>> answer;
  intake_->submit({"tester", "r"}, {bound}, [&](auto result) { answer = std::move(result); });
  std::optional<Status> removed;
  admin().remove("a", "tester", [&](Status told) { removed = std::move(told); });
  release_disk();
  EXPECT_TRUE(answer && *answer);
  ASSERT_TRUE(removed && !*removed);
  EXPECT_THAT(removed->error().message, HasSubstr("is bound to it"));
  EXPECT_TRUE(cancel((*answer)->first_task));
  EXPECT_TRUE(remove("a"));
}

TEST_F(NodeAdminTest, ANodeThatWasRemovedDoesNotComeBackWithALateWrite) {
  set_disk_full(true);
  join("a");
  flush();
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  EXPECT_TRUE(remove("a"));
  set_disk_full(false);
  retry();
  restart_all();
  EXPECT_THAT(state_->registry.slots().names(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace tierpilot::testing
