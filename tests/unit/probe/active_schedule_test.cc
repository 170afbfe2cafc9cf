#include "daemon/probe/active/reprobe_schedule.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace tierpilot {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class ScheduleTest : public testing::Test {
 protected:
  // Runs for so long, measuring whenever it is due at this price; CPU seconds spent.
  double spend(ReprobeSchedule& schedule, int64_t seconds, double cpu_s) {
    double spent_s = 0;
    for (int64_t i = 0; i < seconds; ++i) {
      clock_.advance_ns(kSecond);
      if (!schedule.due()) continue;
      spent_s += cpu_s;
      schedule.measured(cpu_s);
    }
    return spent_s;
  }
  ReprobeSchedule make(double start_cpu_s = 0) {
    return {{}, clock_, [this] { return load_; }, start_cpu_s};
  }
  ManualClock clock_;
  double load_ = 0;
};

TEST_F(ScheduleTest, StaysWithinAThousandthOfACore) {
  constexpr int64_t kDay = 86'400;
  for (const double cpu_s : {0.001, 0.2, 0.9, 7.0}) {
    auto schedule = make(cpu_s);
    const double spent_s = spend(schedule, kDay, cpu_s);
    EXPECT_LE(spent_s, 0.001 * kDay + 1e-6) << cpu_s;
    EXPECT_GT(spent_s, 0) << cpu_s;
  }
}

TEST_F(ScheduleTest, UsesMostOfWhatItMay) {
  auto schedule = make();
  EXPECT_GT(spend(schedule, 86'400, 0.5), 0.9 * 86.4);
}

TEST_F(ScheduleTest, CheapOnesAreNotMoreFrequentThanTheShortestInterval) {
  auto schedule = make();
  EXPECT_LE(spend(schedule, 3600, 1e-6), 60 * 1e-6);
}

TEST_F(ScheduleTest, PaysForTheStartUpFirst) {
  auto schedule = make(2);
  EXPECT_EQ(spend(schedule, 1999, 0.1), 0);
  EXPECT_GT(spend(schedule, 2, 0.1), 0);
}

TEST_F(ScheduleTest, ABusyMachineIsLeftAloneAndAskedLessAndLess) {
  auto schedule = make();
  load_ = 0.9;
  int asked = 0;
  for (int64_t second = 0; second < 7200; ++second) {
    clock_.advance_ns(kSecond);
    if (schedule.next_ns() <= clock_.boot_ns()) ++asked;
    ASSERT_FALSE(schedule.due());
  }
  EXPECT_LE(asked, 13);
  EXPECT_GE(asked, 7) << "at least every quarter of an hour";
  load_ = 0.1;
  EXPECT_GT(spend(schedule, 900, 0.1), 0) << "it goes on once there is room";
}

TEST_F(ScheduleTest, SomethingNewIsMeasuredAtOnceButPaidForLater) {
  auto schedule = make(1);
  schedule.hurry();
  EXPECT_TRUE(schedule.due());
  schedule.measured(1);
  EXPECT_EQ(spend(schedule, 1990, 1), 0) << "both are owed";
  EXPECT_GT(spend(schedule, 20, 1), 0);
}

TEST_F(ScheduleTest, HurryingAllDayOverdrawsByHoursOnly) {
  constexpr int64_t kDay = 86'400;
  auto schedule = make(1);
  double spent_s = 0;
  for (int64_t second = 0; second < kDay; ++second) {
    schedule.hurry();
    spent_s += spend(schedule, 1, 2);
  }
  EXPECT_LE(spent_s, 0.001 * (kDay + 4 * 3600) + 2);
}

TEST_F(ScheduleTest, HurryDoesNotDisturbABusyMachine) {
  auto schedule = make(1);
  load_ = 2;
  schedule.hurry();
  EXPECT_FALSE(schedule.due());
}

TEST(LoadPerCpu, IsTheLoadAverageSharedOut) {
  double load = 0;
  ASSERT_EQ(getloadavg(&load, 1), 1);
  const double cpus = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  // It moves while it is read.
  EXPECT_NEAR(load_per_cpu() * cpus, load, 0.2 * load + 0.2);
}

}  // namespace
}  // namespace tierpilot
