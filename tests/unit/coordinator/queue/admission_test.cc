#include "coordinator/core/queue/admission.h"
#include "base/bytes.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <cmath>

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

class Admission : public ::testing::Test {
 protected:
  Admission() {
    NodeFacts facts{"a", 1, 4, 1 << 30, 1 << 20, "unix:/a", 1};
    (*registry_.add(facts))->life = NodeLife::kUp;
    catalog_.put({"small", 1 << 10, 1, "a", "", "", 0, 0});
    catalog_.put({"large", 1 << 21, 1, "a", "", "", 0, 0});
  }
  static TaskSpec spec(const std::string& name = "t") {
    TaskSpec spec;
    spec.name = name;
    spec.argv = {"true"};
    return spec;
  }
  Error refused(std::vector<TaskSpec> specs) {
    auto result = admit(specs, catalog_, registry_);
    EXPECT_FALSE(result);
    return result ? Error{} : result.error();
  }
  Catalog catalog_;
  Registry registry_;
};

TEST_F(Admission, TakesWhatFits) {
  auto task = spec();
  task.units = 4;
  task.datasets = {{"small", true}};
  EXPECT_TRUE(admit({task}, catalog_, registry_));
}

// After a restart: a node that is known and has not joined yet may be the one that it fits.
TEST_F(Admission, TakesWhatMayFitANodeThatIsYetToJoin) {
  auto wide = spec(), gang = spec(), bound = spec();
  wide.units = 5;
  gang.gang.ranks = 5;
  gang.gang.engine = Engine::kCpu;
  bound.node = "b";
  for (const auto& task : {wide, gang, bound}) refused({task});
  registry_.slots().remember("b", 1);
  for (const auto& task : {wide, gang, bound}) EXPECT_TRUE(admit({task}, catalog_, registry_));
  NodeFacts facts{"b", 2, 4, 1 << 30, 1 << 20, "unix:/b", 1};
  (*registry_.add(facts))->life = NodeLife::kUp;
  EXPECT_THAT(refused({wide}).message, HasSubstr("the largest node has 4"));
  for (const auto& task : {gang, bound}) EXPECT_TRUE(admit({task}, catalog_, registry_));
}

TEST_F(Admission, RefusesAnEmptyCommand) {
  auto task = spec();
  task.argv = {};
  EXPECT_THAT(refused({task}).message, HasSubstr("task 't': the command is empty"));
  task.argv = {""};
  EXPECT_THAT(refused({task}).message, HasSubstr("the command is empty"));
  EXPECT_THAT(refused({}).message, HasSubstr("no task"));
}

// All that it keeps from running say its name.
TEST_F(Admission, RefusesANameThatIsABook) {
  EXPECT_TRUE(admit({spec(std::string(1024, 'n'))}, catalog_, registry_));
  EXPECT_THAT(refused({spec(std::string(1025, 'n'))}).message,
              HasSubstr("its name has 1025 bytes"));
}

TEST_F(Admission, RefusesMemoryTiersItDoesNotKnow) {
  auto task = spec();
  task.memory_tier = "interleave:1,1";
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.memory_tier = "interleave:1";
  EXPECT_EQ(refused({task}).code, ErrorCode::kInvalid);
  EXPECT_THAT(refused({task}).message, HasSubstr("task 't': memory tier 'interleave:1'"));
}

TEST_F(Admission, RanksAreElasticOnCoresOnly) {
  auto task = spec();
  task.max_units = 2;
  task.gang.ranks = 2;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.gang.engine = Engine::kGpu;
  task.gang.gpus_per_rank = 1;
  EXPECT_THAT(refused({task}).message, HasSubstr("ranks on GPUs keep the cores"));
}

TEST_F(Admission, RefusesGoalsThatNobodyCanWorkFor) {
  auto task = spec();
  task.max_units = 2;
  task.training_goal = {
      .weight = 2, .measure = "accuracy", .rises = true, .goal = 1, .deadline_ms = 1};
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  const auto with = [&](auto change) {
    auto wrong = task;
    change(wrong);
    return refused({wrong}).message;
  };
  const double nan = std::nan("");
  EXPECT_THAT(with([](auto& t) { t.max_units = 0; }), HasSubstr("for an elastic task"));
  for (const double weight : {0.0, -1.0, 1e9, nan})
    EXPECT_THAT(with([&](auto& t) { t.training_goal.weight = weight; }), HasSubstr("0.01 to 100"));
  EXPECT_THAT(with([&](auto& t) { t.training_goal.goal = nan; }), HasSubstr("finite"));
  EXPECT_THAT(with([](auto& t) { t.training_goal.deadline_ms = -1; }), HasSubstr("past"));
  EXPECT_THAT(with([](auto& t) { t.training_goal.deadline_ms = 0; }),
              HasSubstr("needs the deadline"));
  EXPECT_THAT(with([](auto& t) { t.training_goal.measure = "\xff"; }), HasSubstr("text"));
  EXPECT_THAT(with([](auto& t) { t.training_goal.measure.assign(65, 'a'); }),
              HasSubstr("64 bytes"));
}

TEST_F(Admission, NamesWhatNoNodeOffers) {
  auto task = spec();
  task.units = 5;
  EXPECT_THAT(refused({task}).message, HasSubstr("asks for 5 units, the largest node has 4"));
  task = spec();
  task.memory_bytes = uint64_t{2} << 30;
  EXPECT_THAT(refused({task}).message, HasSubstr("asks for 2.0 GiB of memory"));
  task = spec();
  task.datasets = {{"large", false}};
  EXPECT_THAT(refused({task}).message, HasSubstr("2.0 MiB"));
  task = spec();
  task.node = "elsewhere";
  EXPECT_EQ(refused({task}).code, ErrorCode::kNotFound);
}

TEST_F(Admission, OneNodeMustHaveAllOfIt) {
  (void)registry_.add({"b", 2, 64, 1 << 20, 1 << 20, "unix:/b", 1});
  auto task = spec();
  task.units = 5;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.memory_bytes = 1 << 30;
  EXPECT_THAT(refused({task}).message, HasSubstr("none for all together"));
  task.units = 4;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
}

TEST_F(Admission, RoomForSwappingIsInWholeMiBAndNoMoreThanANodeOffers) {
  auto task = spec();
  task.swap_room_bytes = kGiB;
  EXPECT_THAT(refused({task}).message,
              HasSubstr("asks for 1.0 GiB of room for swapping, the largest node has none"));
  NodeFacts facts{"b", 2, 4, 1 << 30, 1 << 20, "unix:/b", 1};
  facts.swap_room_bytes = 2 * kGiB;
  (void)registry_.add(facts);
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.swap_room_bytes = 2 * kGiB + kMiB;
  EXPECT_THAT(refused({task}).message, HasSubstr("the largest node has 2.0 GiB"));
  task.swap_room_bytes = kGiB + 1;
  EXPECT_THAT(refused({task}).message, HasSubstr("whole MiB"));
  task.swap_room_bytes = UINT64_MAX / kMiB * kMiB;
  EXPECT_THAT(refused({task}).message, HasSubstr("at most"));
  task.swap_room_bytes = kGiB;
  task.node = "a";
  EXPECT_THAT(refused({task}).message, HasSubstr("node 'a' has none"));
}

// It would wait for ever.
TEST_F(Admission, AShareIsOnANodeWithTheRoomForSwapping) {
  NodeFacts sharing{"b", 2, 4, 1 << 30, 1 << 20, "unix:/b", 1};
  sharing.shared_units = {{"cpu", 1, 100 * kMiB}};
  sharing.swap_room_bytes = kMiB;
  NodeFacts small{"c", 3, 4, 1 << 30, 1 << 20, "unix:/c", 1};
  small.shared_units = {{"cpu", 1, 10 * kMiB}};
  small.swap_room_bytes = 3 * kMiB;
  NodeFacts swapping{"d", 4, 4, 1 << 30, 1 << 20, "unix:/d", 1};
  swapping.swap_room_bytes = 8 * kMiB;
  for (const auto& facts : {sharing, small, swapping}) (void)registry_.add(facts);
  auto task = spec();
  task.share = {.wanted = true, .milli = 100};
  task.swap_room_bytes = 4 * kMiB;
  EXPECT_THAT(refused({task}).message,
              HasSubstr("beside no group of cores that is shared is more than 3.0 MiB"));
  task.swap_room_bytes = 3 * kMiB;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.memory_bytes = 50 * kMiB;
  EXPECT_THAT(refused({task}).message, HasSubstr("has both"));
  task.swap_room_bytes = kMiB;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.node = "c";
  EXPECT_THAT(refused({task}).message, HasSubstr("on node 'c' has more than 10.0 MiB"));
}

TEST_F(Admission, APromiseToATaskWithRoomForSwappingIsOnTrialOnly) {
  NodeFacts facts{"b", 2, 4, 1 << 30, 1 << 20, "unix:/b", 1};
  facts.swap_room_bytes = 1 << 30;
  (void)registry_.add(facts);
  auto task = spec();
  task.share = {.wanted = true, .milli = 100, .latency_sensitive = true};
  task.swap_room_bytes = 1 << 20;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.share.promise_ms = 1000;
  EXPECT_THAT(refused({task}).message, HasSubstr("can be on trial only"));
  task.share.promise_on_trial = true;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
}

TEST_F(Admission, RefusesPromisesThatNobodyCouldMean) {
  auto task = spec();
  task.share = {.wanted = true, .milli = 100, .latency_sensitive = true};
  for (const int64_t ms : {int64_t{1}, int64_t{999}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    task.share.promise_ms = ms;
    EXPECT_THAT(refused({task}).message, HasSubstr("from 1 s to ten years")) << ms;
  }
  task.share.promise_ms = 1;
  EXPECT_THAT(refused({task}).message, HasSubstr("a promise of 0.001 s"));
  for (const int64_t ms : {int64_t{1000}, int64_t{3650} * 86'400'000}) {
    task.share.promise_ms = ms;
    EXPECT_TRUE(admit({task}, catalog_, registry_)) << ms;
  }
}

TEST_F(Admission, RefusesTimesThatNobodyCouldMean) {
  constexpr int64_t kTenYears_ms = int64_t{3650} * 86'400'000;
  auto gang = spec();
  gang.gang.ranks = 2;
  auto elastic = spec();
  elastic.max_units = 2;
  const auto set = [&](int64_t ms) {
    gang.gang.start_within_ms = ms;
    elastic.training_goal.deadline_ms = ms;
  };
  set(kTenYears_ms);
  for (const auto& task : {gang, elastic}) EXPECT_TRUE(admit({task}, catalog_, registry_));
  for (const int64_t ms : {kTenYears_ms + 1, INT64_MAX}) {
    set(ms);
    for (const auto& task : {gang, elastic})
      EXPECT_THAT(refused({task}).message, HasSubstr("ten years")) << ms;
  }
}

TEST_F(Admission, RefusesAShareThatIsOfNoUse) {
  auto task = spec();
  task.share = {.wanted = true, .milli = 100};
  task.gang.ranks = 2;
  EXPECT_THAT(refused({task}).message, HasSubstr("leave out 'share'"));
  task.gang.ranks = 0;
  task.memory_bytes = 1;
  EXPECT_THAT(refused({task}).message, HasSubstr("of memory"));
  task.memory_bytes = 1 << 20;
  task.share.latency_sensitive = true;
  task.share.promise_ms = 120'000;
  task.share.estimate_ms = 60'000;
  task.time_limit_ms = 1000;
  EXPECT_THAT(refused({task}).message, HasSubstr("its time limit"));
  task.time_limit_ms = 60'000;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
}

TEST_F(Admission, RefusesAShareOfMoreMemoryThanAUnitHas) {
  NodeFacts facts{"b", 2, 4, 1 << 30, 1 << 20, "unix:/b", 1};
  facts.shared_units = {{"gpu/X", 1, 100 << 20, "GPU-a"}, {"cpu", 1, 50 << 20}};
  (*registry_.add(facts))->life = NodeLife::kUp;
  auto task = spec();
  task.share = {.wanted = true, .engine = Engine::kGpu, .milli = 100};
  task.memory_bytes = 200 << 20;
  EXPECT_THAT(refused({task}).message, HasSubstr("no GPU that is shared has more than 100.0 MiB"));
  task.node = "b";
  EXPECT_THAT(refused({task}).message, HasSubstr("on node 'b' has more than 100.0 MiB"));
  task.memory_bytes = 100 << 20;
  EXPECT_TRUE(admit({task}, catalog_, registry_));
  task.share.engine = Engine::kCpu;
  EXPECT_THAT(refused({task}).message, HasSubstr("more than 50.0 MiB"));
  task.node.clear();
  registry_.slots().remember("c", 2);
  EXPECT_TRUE(admit({task}, catalog_, registry_)) << "it may fit the one that is yet to join";
}

TEST_F(Admission, RefusesOperationsThatWouldMakeNonsenseOfSpeeds) {
  auto task = spec();
  for (const double operations : {1e-300, 0.5, 1e300, -1.0}) {
    task.float_operations = operations;
    EXPECT_THAT(refused({task}).message, HasSubstr("operations")) << operations;
  }
  for (const double operations : {0.0, 1.0, 1e15}) {
    task.float_operations = operations;
    EXPECT_TRUE(admit({task}, catalog_, registry_)) << operations;
  }
}

TEST_F(Admission, NamesAnUnknownDataset) {
  auto task = spec();
  task.datasets = {{"nope", false}};
  const auto error = refused({task});
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("dataset 'nope' does not exist"));
  task.datasets = {{"small", false}, {"small", true}};
  EXPECT_THAT(refused({task}).message, HasSubstr("named twice"));
}

// A list of tasks tells all of them.
TEST_F(Admission, RefusesMoreNamesThanAListCanTell) {
  auto parent = spec(std::string(1024, 'p')), child = spec("child");
  child.after.assign(3'900, parent.name);
  const auto message = refused({parent, child}).message;
  EXPECT_THAT(message, HasSubstr("'child'"));
  EXPECT_THAT(message, HasSubstr("at most 1048576"));
  child.after.resize(1'000);
  EXPECT_TRUE(admit({parent, child}, catalog_, registry_));
}

TEST_F(Admission, ResolvesDependencies) {
  auto a = spec("a"), b = spec("b"), c = spec("c");
  c.after = {"a", "b", "a"};
  auto depends_on = admit({a, b, c}, catalog_, registry_);
  ASSERT_TRUE(depends_on);
  EXPECT_EQ((*depends_on)[2], (std::vector<size_t>{0, 1}));
}

TEST_F(Admission, RefusesCyclesAndNamesThem) {
  auto a = spec("a"), b = spec("b"), c = spec("c"), d = spec("d");
  b.after = {"c"};
  c.after = {"b"};
  d.after = {"c", "a"};
  const auto message = refused({a, b, c, d}).message;
  EXPECT_THAT(message, HasSubstr("cycle"));
  EXPECT_THAT(message, HasSubstr("'b'"));
  EXPECT_THAT(message, HasSubstr("'c'"));
  auto self = spec("self");
  self.after = {"self"};
  EXPECT_THAT(refused({self}).message, HasSubstr("cycle: task 'self' -> task 'self'"));
  auto unknown = spec("x");
  unknown.after = {"ghost"};
  EXPECT_THAT(refused({unknown}).message, HasSubstr("'ghost', which is not in this submit"));
  EXPECT_THAT(refused({spec("x"), spec("x")}).message, HasSubstr("given twice"));
}

TEST_F(Admission, RefusesNumbersThatAreNone) {
  auto task = spec();
  task.float_operations = -1;
  EXPECT_THAT(refused({task}).message, HasSubstr("operations"));
  task = spec();
  task.units = 0;
  EXPECT_THAT(refused({task}).message, HasSubstr("0 units"));
  task = spec();
  task.time_limit_ms = -5;
  EXPECT_THAT(refused({task}).message, HasSubstr("time limit"));
  for (const int32_t priority : {-1001, 1001, INT32_MIN, INT32_MAX}) {
    task = spec();
    task.priority = priority;
    EXPECT_THAT(refused({task}).message, HasSubstr("from -1000 to 1000")) << priority;
  }
  task = spec();
  task.env = {{"A=B", "c"}};
  EXPECT_THAT(refused({task}).message, HasSubstr("environment variable"));
  task = spec();
  task.argv = {std::string(200'000, 'x')};
  EXPECT_THAT(refused({task}).message, HasSubstr("at most"));
}

}  // namespace
}  // namespace tierpilot
