#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "policies/sim/gang/fleet_record.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::gang {
namespace {

constexpr const char* kHead = "node,start_day,end_day,level,class,description\n";

class RecordReplay : public testing::Test {
 protected:
  // Ten days; node b is the one with most faults.
  Result<FleetRecord> record(const std::string& later = "c,6,7,H,GPU,x\nb,10,10,H,GPU,x\n",
                             std::optional<uint32_t> nodes = 4) {
    const auto file = scratch_.path() + "/record.csv";
    std::ofstream(file) << kHead << "a,0,1,H,GPU,x\nb,2,3,H,GPU,x\nb,4,4.5,H,NIC,x\n" << later;
    return read_fleet_record(file, nodes, 32);
  }
  static GangSuite suite_of(const FleetRecord& record) {
    return replay_suite(std::make_shared<const FleetRecord>(record), {.seeds = 1});
  }

  ScratchDirectory scratch_;
};

TEST_F(RecordReplay, TheSecondHalfChangesNothingOfWhatIsKnownAtTheSplit) {
  const auto one = record();
  const auto other = record("a,6,7,H,GPU,x\na,8,9,H,GPU,x\na,10,10,H,GPU,x\n");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->nodes, 4U);
  EXPECT_EQ(one->split_day, 5);
  EXPECT_EQ(one->rates.front().per_day, other->rates.front().per_day);
  EXPECT_GT(one->rates.size(), 1U);
  for (size_t i = 1; i < one->rates.size(); ++i)
    EXPECT_GT(one->rates[i].day, one->rates[i - 1].day);
  EXPECT_EQ(one->rates[1].day, 6) << "whoever is there when node c fails knows it";
}

TEST_F(RecordReplay, NodesThatAreNotNamedAreThere) {
  EXPECT_EQ(record("c,6,7,H,GPU,x\nb,10,10,H,GPU,x\n", {})->nodes, 400U);
  const auto too_few = record("c,6,7,H,GPU,x\nb,10,10,H,GPU,x\n", 2);
  ASSERT_FALSE(too_few.has_value());
  EXPECT_NE(too_few.error().message.find("names 3 nodes"), std::string::npos);
}

TEST_F(RecordReplay, AHalfWithoutFaultsIsRefusedByItsName) {
  const auto file = scratch_.path() + "/quiet.csv";
  std::ofstream(file) << kHead << "a,0,1,H,GPU,x\nb,1,9,H,GPU,x\n";
  const auto refused = read_fleet_record(file, {}, 32);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("quiet.csv"), std::string::npos);
  EXPECT_NE(refused.error().message.find("0 in the second"), std::string::npos);
}

TEST_F(RecordReplay, FaultsOfDevicesAreThoseOfTheirNodeAndMayTellNoRepair) {
  const auto file = scratch_.path() + "/devices.csv";
  std::ofstream(file) << "time_days,device,node,kind\n0,d1,n1,xid\n8,d2,n1,xid\n9,d3,n2,xid\n";
  const auto read = read_fleet_record(file, 2, 48);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->faults[0].node, read->faults[1].node);
  EXPECT_NE(read->faults[0].node, read->faults[2].node);
  EXPECT_EQ(read->faults[1].until_day, 10);
}

TEST_F(RecordReplay, AFaultFailsAllUnitsOfItsNodeAndIsKnownOnceItWas) {
  const auto read = record();
  ASSERT_TRUE(read.has_value());
  const auto suite = suite_of(*read);
  ASSERT_EQ(suite.cells.size(), 2U);
  const auto scene = suite.make_scene(suite.cells.front(), 1);
  EXPECT_EQ(scene.units, 32U);
  std::multiset<size_t> past, to_come;
  for (uint32_t unit = 0; unit < scene.units; ++unit) {
    EXPECT_EQ(scene.failures.past_times_h[unit],
              scene.failures.past_times_h[unit - unit % scene.units_per_node]);
    past.insert(scene.failures.past_times_h[unit].size());
    to_come.insert(scene.failures.times_h[unit].size());
  }
  EXPECT_EQ(past, (std::multiset<size_t>([&] {
              std::multiset<size_t> of;
              for (const size_t count : {0, 0, 1, 2})
                for (int i = 0; i < 8; ++i) of.insert(count);
              return of;
            }())));
  EXPECT_EQ(to_come.count(1), 16U);
}

TEST_F(RecordReplay, JobsHaveTheirEndWhateverThePolicyIs) {
  const auto suite = suite_of(*record());
  const auto runs = run_gangs(
      suite, [](const auto& name, const auto&, uint64_t seed) { return make_placer(name, seed); },
      1, [](double) {});
  ASSERT_TRUE(runs.has_value());
  for (const auto& run : *runs) EXPECT_EQ(run.result.unfinished, 0U);
}

// Four units on two nodes, of which the first is out from the second hour to the fourth.
GangScene with_an_outage(std::vector<Job> jobs) {
  GangScene scene{
      .jobs = std::move(jobs), .units = 4, .units_per_node = 2, .costs = {}, .failures = {}};
  scene.failures.times_h = {{2}, {2}, {}, {}};
  scene.failures.past = {0, 0, 0, 0};
  scene.failures.past_h = 1000;
  scene.outages = {{2, 4, 0}};
  return scene;
}

TEST(Outages, EndTheJobOnTheNodeAndKeepOthersFromIt) {
  auto scene = with_an_outage({{.units = 1, .work_h = 5}, {.units = 4, .work_h = 1}});
  const auto result = simulate(scene, **make_placer("first-fit", 1));
  EXPECT_EQ(result.restarts, 1U);
  EXPECT_EQ(result.unfinished, 0U);
  EXPECT_GT(result.makespan_h, 2 + 3 + 1);  // the job of all units waits for the other's end
}

TEST(Outages, KeepIdleNodesFromNewJobs) {
  const auto scene = with_an_outage({{.arrival_h = 3, .units = 4, .work_h = 1}});
  const auto result = simulate(scene, **make_placer("first-fit", 1));
  EXPECT_NEAR(result.mean_completion_h, 1 + 1, 0.1);  // from its arrival to the node's return
  EXPECT_EQ(result.restarts, 0U);
}

TEST(FewestFaults, TakesTheNodesThatFailedLeastOften) {
  PlacementState state;
  state.units_per_node = 2;
  state.node = {0, 0, 1, 1, 2, 2};
  state.free.assign(6, true);
  state.per_h.assign(6, 1e-3);
  state.failed_h = {{1}, {}, {}, {}, {-5, 2}, {}};
  const auto chosen = (*make_placer("fewest-faults", 1))->place(state, {.units = 4});
  EXPECT_EQ(std::set<uint32_t>(chosen.begin(), chosen.end()), (std::set<uint32_t>{0, 1, 2, 3}));
}

TEST(SuppliedRecord, Has400NodesAndAHalfToReplay) {
  const auto file = std::filesystem::path(RECORDS) / "s0_node_faults.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const auto record = read_fleet_record(file, {}, 32);
  ASSERT_TRUE(record.has_value()) << record.error().message;
  EXPECT_EQ(record->nodes, 400U);
  EXPECT_EQ(record->faults.size(), 349U);
  EXPECT_GT(record->rates.size(), 50U);
}

}  // namespace
}  // namespace tierpilot::gang
