// What could not be written while the disk was full, and a restart relies on.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "gangs/gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FullDisk : public Gangs {
 protected:
  // Before anything is tried once more by itself.
  void cancel_again(uint64_t id) {
    EXPECT_FALSE(cancel(id));
    set_disk_full(false);
    EXPECT_TRUE(cancel(id));
    again();
  }
};

TEST_F(FullDisk, ACancelThatIsAcknowledgedHoldsForWhatComesAfterTheTask) {
  const auto id = submit({spec("a"), spec("b", {"a"}), spec("c", {"b"})})->first_task;
  set_disk_full(true);
  cancel_again(id);
  const auto node = join("n");
  place();
  EXPECT_THAT(node->started, IsEmpty());
  EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
  for (const uint64_t after : {id + 1, id + 2}) EXPECT_EQ(stored(after)->state, TaskState::kFailed);
}

TEST_F(FullDisk, AFailureThatIsAcknowledgedHoldsForWhatComesAfterTheTask) {
  auto node = join("n");
  const auto id = submit({spec("a"), spec("b", {"a"})})->first_task;
  place();
  set_disk_full(true);
  EXPECT_FALSE(exit("n", {id, 1}, failure(3)));
  cancel_again(id);
  node = join("n");
  place();
  EXPECT_THAT(node->started, IsEmpty());
  EXPECT_EQ(stored(id + 1)->state, TaskState::kFailed);
}

TEST_F(FullDisk, NobodyIsPlacedBehindAnEndThatCouldNotBeWritten) {
  const auto node = join("n");
  auto wide = gang(2);
  wide.after = {"a"};
  const auto id = submit({spec("a"), spec("b", {"a"}), wide})->first_task;
  place();
  set_disk_full(true);
  EXPECT_FALSE(exit("n", {id, 1}, success()));
  set_disk_full(false);
  place();
  EXPECT_THAT(node->started, SizeIs(1));
  for (const uint64_t behind : {id + 1, id + 2})
    EXPECT_THAT(state_->blocked_by(*state_->tasks.find(behind)), HasSubstr("is written down"));
  lifecycle_->writes().retry();
  flush();
  for (const uint64_t behind : {id + 1, id + 2})
    EXPECT_EQ(state_->blocked_by(*state_->tasks.find(behind)), "");
  place();
  EXPECT_THAT(node->started, SizeIs(2));
  EXPECT_TRUE(exit("n", {id + 1, 1}, success()));
  place();
  EXPECT_THAT(node->started, SizeIs(4)) << "and there is room for both ranks";
}

// It was on its way there twice.
TEST_F(FullDisk, AnEndThatIsOnDiskHoldsNobodyUpThoughALaterWriteOfItFails) {
  join("n");
  const auto id = submit({spec("a"), spec("b", {"a"})})->first_task;
  place();
  hold_disk();
  lifecycle_->exited("n", {id, 1}, success(), nullptr);
  store_->write(
      [](Db& db) {
        return db.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON tasks BEGIN "
            "SELECT RAISE(ABORT, 'database or disk is full'); END;");
      },
      nullptr);
  std::optional<Status> later;
  lifecycle_->writes().write_ends([&](Status status) { later = std::move(status); });
  release_disk();
  flush();
  ASSERT_TRUE(later);
  EXPECT_FALSE(*later);
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
  EXPECT_EQ(state_->blocked_by(*state_->tasks.find(id + 1)), "");
}

// Whose end failed when it was on its way to the disk itself.
TEST_F(FullDisk, APlacementIsNotWrittenBehindAnEndThatIsNot) {
  join("n");
  const auto id = submit({spec("a"), spec("b", {"a"})})->first_task;
  EXPECT_EQ(state_->tasks.find(id + 1)->parents, std::vector<uint64_t>{id});
  place();
  std::vector<Status> seen;
  const auto ask = [&] {
    store_->write([id](Db& db) { return records::need_ends(db, {id}); },
                  [&](Status status) { seen.push_back(std::move(status)); });
    flush();
  };
  ask();
  EXPECT_TRUE(exit("n", {id, 1}, success()));
  ask();
  ASSERT_EQ(seen.size(), 2u);
  ASSERT_FALSE(seen[0]);
  EXPECT_EQ(seen[0].error().code, ErrorCode::kConflict);
  EXPECT_TRUE(seen[1]);
}

TEST_F(FullDisk, RanksEndWithTheirGang) {
  const auto id = submit_gang(2);
  set_disk_full(true);
  cancel_again(id);
  EXPECT_THAT(state_->tasks.all(), IsEmpty());
  for (const uint64_t one : {id, id + 1, id + 2})
    EXPECT_EQ(stored(one)->state, TaskState::kCancelled);
}

TEST_F(FullDisk, AllWhoAskAreTold) {
  const auto first = submit({spec("a"), spec("b", {"a"}), spec("c", {"b"})})->first_task;
  hold_disk();
  int told = 0;
  for (int asked = 0; asked < 10; ++asked)
    for (uint64_t id = first; id < first + 3; ++id)
      lifecycle_->cancel(id, [&](const Status& done) { told += done.has_value(); });
  release_disk();
  flush();
  EXPECT_EQ(told, 30);
  EXPECT_THAT(state_->tasks.all(), IsEmpty());
}

TEST_F(FullDisk, AStartIsWrittenOnceItCanBe) {
  join("n");
  const auto id = submit({spec()})->first_task;
  place();
  set_disk_full(true);
  lifecycle_->started("n", {id, 1});
  flush();
  retry();
  EXPECT_EQ(stored(id)->state, TaskState::kAssigned);
  set_disk_full(false);
  retry();
  EXPECT_EQ(stored(id)->state, TaskState::kRunning);
}

TEST_F(FullDisk, ANodeThatJoinedMeanwhileIsKnownAfterARestart) {
  set_disk_full(true);
  const auto node = join("n", 8);
  flush();
  set_disk_full(false);
  retry();
  const auto id = submit({spec()})->first_task;
  place();
  ASSERT_THAT(node->started, SizeIs(1));
  again();
  join("n", 8, {{id, 1}});
  EXPECT_EQ(task(id).attempt, 1u);
  EXPECT_EQ(task(id).node, "n");
}

TEST_F(FullDisk, TheLastJoiningCounts) {
  set_disk_full(true);
  for (const uint64_t instance : {7, 8}) {
    join("n", instance);
    flush();
    membership_->disconnected(tickets_["n"]);
    pass(settings_.lease_ms + 1);
    membership_->expire();
  }
  set_disk_full(false);
  retry();
  EXPECT_EQ(records::nodes(store_->reader())->at("n").instance, 8u);
}

TEST_F(FullDisk, ALongerLeaseIsKnownToALaterCoordinator) {
  again();
  flush();
  settings_.lease_ms *= 6;
  set_disk_full(true);
  again();
  flush();
  set_disk_full(false);
  retry();
  const auto node = join("n");
  (void)submit({spec()});
  place();
  ASSERT_THAT(node->started, SizeIs(1));
  const int64_t lease_end_ns = state_->registry.find("n")->lease_end_ns;
  settings_.lease_ms /= 6;
  again();
  EXPECT_GE(state_->registry.find("n")->lease_end_ns, lease_end_ns);
}

// Those that an earlier coordinator granted go on.
TEST_F(FullDisk, AShorterLeaseIsNotedOnceLongerOnesHaveEnded) {
  join("n");
  (void)submit({spec()});
  place();
  const int64_t lease_end_ns = state_->registry.find("n")->lease_end_ns;
  settings_.lease_ms /= 5;
  for (int restarts = 0; restarts < 2; ++restarts) {
    again();
    membership_->expire();
    flush();
    EXPECT_GE(state_->registry.find("n")->lease_end_ns, lease_end_ns);
  }
  pass(5 * settings_.lease_ms);
  membership_->expire();
  flush();
  EXPECT_EQ(records::setting(store_->reader(), "lease_ms", 0), settings_.lease_ms);
}

}  // namespace
}  // namespace tierpilot::testing
