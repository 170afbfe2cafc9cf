// Devices that fail under a gang, and units that are unhealthy.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "gangs/gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
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
  bool is_news(uint64_t sequence) {
    return state_->registry.find("g")->heard.hear(sequence, [](const Status&) {}) != nullptr;
  }
  std::string unit_of(uint64_t gang) { return gpu_unit_id("g", rank(gang, 0).rank->gpus.at(0)); }
};

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
          if (auto put = records::put_unit_failure(db, {i, "g/cpu/0", "signal 9", 1}); !put)
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

// What a node could not tell that it was heard, it tells again.
TEST_F(UnitFaults, AnEventThatIsToldAgainIsKnown) {
  join_gpus();
  EXPECT_TRUE(is_news(3));
  EXPECT_FALSE(is_news(2));
  EXPECT_FALSE(is_news(3));
  join_gpus();  // the same daemon
  EXPECT_FALSE(is_news(3));
  EXPECT_TRUE(is_news(4));
  join_anew();
  EXPECT_TRUE(is_news(1)) << "another daemon counts anew";
}

// It would forget what a power cut takes from the coordinator.
TEST_F(UnitFaults, OneThatIsToldAgainIsWrittenOnceTheFirstIs) {
  join_gpus();
  flush();
  hold_disk();
  std::vector<std::string> written;
  const auto tell = [&](const std::string& when) {
    auto first = state_->registry.find("g")->heard.hear(
        3, [&written, when](const Status&) { written.push_back(when); });
    if (first) gangs_->unit_failed("g/gpu/GPU-1", "Xid 63", "a row was remapped", std::move(first));
  };
  tell("first");
  tell("again");
  join_gpus();  // the same daemon
  tell("on another connection");
  EXPECT_THAT(written, IsEmpty());
  release_disk();
  EXPECT_THAT(written, ElementsAre("first", "again", "on another connection"));
  tell("once it is written");
  EXPECT_THAT(written, SizeIs(4));
  EXPECT_THAT(state_->units.all_failures(), SizeIs(1));
}

TEST_F(UnitFaults, WhatAnotherDaemonToldSaysNothingOfTheSameNumber) {
  join_gpus();
  bool before = false, now = false, again = false;
  const auto hear = [this](uint64_t sequence, bool& written) {
    return state_->registry.find("g")->heard.hear(sequence,
                                                  [&written](const Status&) { written = true; });
  };
  auto of_before = hear(3, before);
  join_anew();
  auto of_now = hear(3, now);
  ASSERT_TRUE(of_before && of_now);
  of_before({});
  EXPECT_TRUE(before);
  EXPECT_FALSE(hear(3, again));
  EXPECT_FALSE(now || again);
  of_now({});
  EXPECT_TRUE(now && again);
}

}  // namespace
}  // namespace tierpilot::testing
