#include "policies/sim/sharing/unit_looks.h"

#include <gtest/gtest.h>

namespace tierpilot::sharing {
namespace {

class UnitLooksTest : public testing::Test {
 protected:
  UnitLooksTest() {
    workload_.units = 2;
    job_.id = 1;
    job_.run_s = 100'000;
    job_.need_milli = 500;
    running_.start({&job_, 0, 500, 100'000, 0});
  }

  TimedWorkload workload_;
  TimedJob job_;
  RunningJobs running_{workload_, {}, 30, 15};
};

TEST_F(UnitLooksTest, EveryPeriodWithoutAPart) {
  UnitLooks looks(2, 10, 0);
  EXPECT_EQ(looks.next_s(), 10);
  EXPECT_FALSE(looks.is_time(9));
  ASSERT_TRUE(looks.is_time(10));
  looks.looked(0, 10, running_);
  looks.looked(1, 10, running_);
  EXPECT_TRUE(looks.ended(10, kNoPromise));
  EXPECT_EQ(looks.next_s(), 20);
  EXPECT_TRUE(looks.is_due(0, 20));
}

TEST_F(UnitLooksTest, APartOfTheShortestRunAndSoonAfterChanges) {
  UnitLooks looks(2, 10, 0.01);
  looks.looked(0, 10, running_);
  looks.looked(1, 10, running_);
  looks.ended(10, kNoPromise);
  EXPECT_EQ(looks.next_s(), 20) << "it has not shown its pace";
  looks.looked(0, 40, running_);
  EXPECT_FALSE(looks.ended(40, kNoPromise));
  EXPECT_EQ(looks.next_s(), 1040);
  EXPECT_FALSE(looks.is_due(1, 1040)) << "nobody is there";
  looks.look_soon(1);
  EXPECT_EQ(looks.next_s(), 50) << "not before a period has gone by";
  EXPECT_FALSE(looks.is_due(0, 50));
}

TEST_F(UnitLooksTest, SoonerWhereAPromiseWaits) {
  UnitLooks looks(2, 10, 0.01);
  looks.looked(0, 40, running_);
  looks.looked(1, 40, running_);
  looks.ended(40, 5000);
  EXPECT_EQ(looks.next_s(), 90);
  EXPECT_TRUE(looks.ended(90, 4950)) << "it is time to look at who waits";
}

}  // namespace
}  // namespace tierpilot::sharing
