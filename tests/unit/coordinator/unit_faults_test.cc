// Devices that fail under a gang, and units that are unhealthy.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "coordinator/core/gangs/unit_order.h"
#include "coordinator/store/records.h"
#include "coordinator/store/unit_records.h"
#include "gangs/gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UnitFaults : public Gangs {
 protected:
  std::shared_ptr<FakeNode> join_gpus() {
    auto with_gpus = facts("g");
    with_gpus.gpus = {"GPU-1", "GPU-2"};
    auto link = std::make_shared<FakeNode>();
    EXPECT_TRUE(membership_->join(with_gpus, link, {}, {}));
    return link;
  }
  uint64_t submit_on_gpu(uint32_t restarts) {
    auto one = gang(1, restarts);
    one.gang.engine = Engine::kGpu;
    one.gang.gpus_per_rank = 1;
    return submit({one})->first_task;
  }
  // Another daemon of the same node.
  void join_anew() {
    auto anew = facts("g", 8);
    anew.predecessors = {7};
    EXPECT_TRUE(membership_->join(anew, std::make_shared<FakeNode>(), {}, {}));
  }
  std::string unit_of(uint64_t gang) { return gpu_unit_id("g", rank(gang, 0).rank->gpus.at(0)); }
};

TEST_F(UnitFaults, OfAUnitWithoutAProperNameIsNoNews) {
  auto odd = facts("g");
  odd.gpus = {"", "a/b"};
  ASSERT_TRUE(membership_->join(odd, std::make_shared<FakeNode>(), {}, {}));
  int written = 0;
  for (const auto& gpu : odd.gpus)
    gangs_->unit_failed("g/gpu/" + gpu, "Xid 79", "fell off the bus", "g/7/1",
                        [&](const Status& status) { written += status.has_value(); });
  EXPECT_EQ(written, 2);
}

TEST_F(UnitFaults, TheGangBeginsAnewElsewhereWithoutARestartOfItsOwn) {
  auto link = join_gpus();
  const auto id = submit_on_gpu(0);
  place();
  start_all(id);
  const auto first = unit_of(id);
  gangs_->unit_failed(first, "Xid 94", "contained memory error");
  ASSERT_THAT(link->cancelled, SizeIs(1));
  EXPECT_THAT(link->cancelled[0].second, HasSubstr("Xid 94"));
  end_cancelled(id);
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_THAT(task(id).reason, HasSubstr(first));
  EXPECT_EQ(task(id).restarts, 0u);
  EXPECT_EQ(state_->units.failures(first), 1u);
  place();
  start_all(id);
  EXPECT_NE(unit_of(id), first) << "it has the higher rate now";
  end(id, 0, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
}

TEST_F(UnitFaults, ARankThatDiesOfItIsNotItsProgramsFaultNorCountedTwice) {
  join_gpus();
  const auto id = submit_on_gpu(0);
  for (int i = 0; i < 2; ++i) {  // the same end on two units would be the program's own
    place();
    start_all(id);
    const auto unit = unit_of(id);
    gangs_->unit_failed(unit, "Xid 79", "the device has fallen off the bus");
    end(id, 0, killed(SIGABRT));
    flush();
    EXPECT_EQ(task(id).state, TaskState::kQueued);
    EXPECT_EQ(state_->units.failures(unit), 1u);
  }
  again();
  EXPECT_EQ(state_->units.failures("g/gpu/GPU-1") + state_->units.failures("g/gpu/GPU-2"), 2u)
      << "they outlive the coordinator";
}

TEST_F(UnitFaults, OfUnitsThatNobodyHasOrKnows) {
  join_gpus();
  gangs_->unit_failed("g/gpu/GPU-1", "Xid 63", "a row was remapped");
  EXPECT_EQ(state_->units.failures("g/gpu/GPU-1"), 1u);
  gangs_->unit_failed("g/gpu/GPU-9", "Xid 63", "a row was remapped");
  gangs_->unit_failed("", "", "");
  EXPECT_THAT(state_->units.all_failures(), SizeIs(1));
}

TEST_F(UnitFaults, UnhealthyUnitsGetNothingUntilTheyAreWell) {
  auto link = join_gpus();
  auto& node = *state_->registry.find("g");
  membership_->says_unhealthy(node, {{"gpu/GPU-1", "device lost"}, {"gpu/GPU-2", "too hot"}});
  EXPECT_EQ(state_->units.unhealthy_because("g/gpu/GPU-1"), "device lost");
  const auto id = submit_on_gpu(0);
  place();
  EXPECT_THAT(link->started, IsEmpty());
  membership_->says_unhealthy(node, {{"gpu/GPU-1", "device lost"}, {"nonsense", "x"}});
  place();
  EXPECT_THAT(link->started, SizeIs(1));
  EXPECT_EQ(unit_of(id), "g/gpu/GPU-2");
  membership_->says_unhealthy(node, {});
  EXPECT_EQ(state_->units.unhealthy_because("g/gpu/GPU-1"), "");
  flush();
  const auto notes = records::node_events(store_->reader(), "g", 10);
  ASSERT_TRUE(notes);
  EXPECT_THAT(*notes, SizeIs(4)) << "two unhealthy, each well again";
}

// Jobs that crash as often as they may would fill the disk, and every start would read it all.
TEST_F(UnitFaults, OfAllTheLastTenThousandAreKept) {
  store_->write(
      [](Db& db) -> Status {
        for (int i = 0; i < 10'050; ++i)
          if (auto put = records::put_unit_failure(db, {i, "g/cpu/0", "signal 9", 1, {}}); !put)
            return put;
        return {};
      },
      nullptr);
  flush();
  auto count = store_->reader().query("SELECT COUNT(*), MIN(at_ms) FROM unit_failures");
  ASSERT_TRUE(count && *count->step());
  EXPECT_EQ(count->integer(0), 10'000);
  EXPECT_EQ(count->integer(1), 50);
}

// A daemon that was not heard, or could not be told that it was, tells again.
class ToldUnitFaults : public UnitFaults {
 protected:
  ToldUnitFaults() { join_gpus(); }
  // Its event of that number; gives what becomes of it, once that is known.
  std::shared_ptr<std::optional<Status>> tell(uint64_t event, const std::string& unit = kUnit) {
    auto written = std::make_shared<std::optional<Status>>();
    gangs_->unit_failed(unit, "Xid 63", "a row was remapped",
                        told_as(state_->registry.find("g")->facts, event),
                        [written](const Status& status) { *written = status; });
    return written;
  }
  uint64_t failures() { return state_->units.failures(kUnit); }
  void rename(const char* from, const char* to) {
    store_->write([sql = fmt::format("ALTER TABLE {} RENAME TO {}", from, to)](
                      Db& db) { return db.execute(sql.c_str()); },
                  nullptr);
  }

  static constexpr const char* kUnit = "g/gpu/GPU-1";
};

TEST_F(ToldUnitFaults, CountOnceHoweverOftenTheyAreTold) {
  tell(3);
  tell(3);
  EXPECT_EQ(failures(), 1u);
  join_gpus();  // the same daemon, on another connection
  tell(3);
  EXPECT_EQ(failures(), 1u);
  tell(4);
  tell(2, "g/gpu/GPU-2");
  EXPECT_EQ(failures(), 2u);
  EXPECT_THAT(state_->units.all_failures(), SizeIs(3));
}

TEST_F(ToldUnitFaults, CountOnceWhenTheAcknowledgementWasLostWithTheCoordinator) {
  tell(3);
  flush();
  again();
  join_gpus();
  tell(3);
  EXPECT_EQ(failures(), 1u);
  flush();
  again();
  EXPECT_EQ(failures(), 1u);
}

TEST_F(ToldUnitFaults, CountAnewWhenAnotherDaemonTellsThem) {
  tell(3);
  join_anew();
  tell(3);
  EXPECT_EQ(failures(), 2u) << "it counts its events itself";
  flush();
  again();
  EXPECT_EQ(failures(), 2u);
}

// It would forget what a power cut takes from the coordinator.
TEST_F(ToldUnitFaults, AreAcknowledgedOnceTheyAreOnDisk) {
  flush();
  hold_disk();
  const auto first = tell(3), again = tell(3);
  join_gpus();
  const auto later = tell(3);
  EXPECT_FALSE(*first || *again || *later);
  release_disk();
  EXPECT_TRUE(*first && *again && *later);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(ToldUnitFaults, WhoseWriteFailsAreNotAcknowledgedAndAreWrittenWhenToldAgain) {
  settings_.quarantine_failures = 1;
  again();
  join_gpus();
  flush();
  rename("unit_failures", "away");
  const auto failed = tell(3);
  flush();
  ASSERT_TRUE(*failed);
  EXPECT_FALSE(**failed) << "its daemon would forget it";
  EXPECT_EQ(failures(), 1u);
  EXPECT_FALSE(state_->units.is_quarantined(kUnit)) << "nor is that on disk";
  rename("away", "unit_failures");
  const auto written = tell(3);
  flush();
  ASSERT_TRUE(*written);
  EXPECT_TRUE(**written);
  EXPECT_EQ(failures(), 1u);
  EXPECT_TRUE(state_->units.is_quarantined(kUnit));
  again();
  EXPECT_EQ(failures(), 1u);
  EXPECT_TRUE(state_->units.is_quarantined(kUnit));
}

TEST_F(ToldUnitFaults, OfAUnitThatWasResumedSinceAreKnown) {
  tell(3);
  std::optional<Status> resumed;
  order_unit(*state_, {.unit = kUnit, .drain = false, .reason = {}},
             [&](Status status) { resumed = std::move(status); });
  ASSERT_TRUE(posts_.run_until([&] { return resumed.has_value(); }));
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(failures(), 0u);
    const auto written = tell(3);
    flush();
    EXPECT_TRUE(*written && **written);
    EXPECT_EQ(failures(), 0u);
    again();
    join_gpus();
  }
}

// A power cut would undo it.
TEST_F(ToldUnitFaults, AQuarantineCountsAtOnceAndIsToldOnceItIsOnDisk) {
  settings_.quarantine_failures = 1;
  again();
  join_gpus();
  flush();
  hold_disk();
  tell(3);
  EXPECT_THAT(state_->units.drained_because(kUnit), HasSubstr("1 x Xid 63"));
  EXPECT_EQ(state_->units.told_drain(kUnit), "");
  EXPECT_FALSE(state_->units.is_quarantined(kUnit));
  release_disk();
  EXPECT_TRUE(state_->units.is_quarantined(kUnit));
  EXPECT_THAT(state_->units.told_drain(kUnit), HasSubstr("1 x Xid 63"));
}

}  // namespace
}  // namespace tierpilot::testing
