// Where `share` makes no promise, and what it says of a start.
#include <gtest/gtest.h>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {
namespace {

constexpr auto kSensitive = JobClass::kLatencySensitive;
constexpr auto kBestEffort = JobClass::kBestEffort;

class Promising : public ::testing::Test {
 protected:
  static LiveJob running(JobClass job_class, uint32_t milli, uint32_t need) {
    LiveJob job;
    job.id = 1;
    job.job_class = job_class;
    job.share.milli = milli;
    job.need_milli = need;
    return job;
  }
  static LiveUnit unit_with(std::vector<LiveJob> jobs) {
    return {"cpu", {kWholeUnit, 0}, std::move(jobs)};
  }
  static WaitingJob waiting(uint32_t milli, double run_s, double promise_s) {
    WaitingJob job;
    job.id = 100;
    job.job_class = kSensitive;
    job.predicted["cpu"] = {milli, 0, run_s, run_s};
    job.promise_left_s = promise_s;
    return job;
  }
  std::string reason_beside(const LiveJob& other, double promise_s) {
    const auto start = share_->place({{unit_with({other})}}, waiting(400, 10, promise_s));
    return start ? start->reason : "it does not start";
  }
  bool promises(const WaitingJob& job, const std::vector<WaitingJob>& ahead = {}) {
    return share_->admit(nodes_, ahead, job).admitted;
  }

  std::unique_ptr<SharePolicy> share_ = std::move(*make_share_policy("share", {}));
  std::vector<LiveNode> nodes_{{unit_with({})}, {unit_with({})}};
};

TEST_F(Promising, AStartSaysAtWhoseCostItIs) {
  const auto above = running(kSensitive, 1000, 500), other = running(kBestEffort, 900, 900);
  EXPECT_EQ(reason_beside(above, kNoPromise),
            "what it needs, of what others have beyond their needs");
  EXPECT_EQ(reason_beside(above, 30),
            "what keeps its promise, of what others have beyond their needs");
  EXPECT_EQ(reason_beside(other, kNoPromise), "what it needs, in the place of best-effort jobs");
  EXPECT_EQ(reason_beside(other, 12), "what keeps its promise, in the place of best-effort jobs");
}

TEST_F(Promising, WithoutAnyUnitThereIsNoPromise) {
  const auto job = waiting(500, 10, 200);
  EXPECT_TRUE(promises(job));
  nodes_.clear();
  EXPECT_FALSE(promises(job));
}

TEST_F(Promising, WhoseRunTimeIsNotKnownIsToldWhatToDo) {
  const auto refused = share_->admit(nodes_, {}, waiting(500, 0, 200));
  EXPECT_FALSE(refused.admitted);
  EXPECT_NE(refused.reason.find("give an estimate"), std::string::npos) << refused.reason;
}

TEST_F(Promising, AUnitOfAnotherTypeIsNone) {
  auto job = waiting(500, 10, 200);
  job.predicted["gpu"] = job.predicted["cpu"];
  job.predicted.erase("cpu");
  EXPECT_FALSE(promises(job));
}

TEST_F(Promising, AUnitWithTooLittleMemoryIsNone) {
  auto job = waiting(500, 10, 200);
  job.predicted["cpu"].memory_bytes = 2;
  nodes_[1][0].whole.memory_bytes = 1;
  EXPECT_FALSE(promises(job));
  nodes_[1][0].whole.memory_bytes = 2;
  EXPECT_TRUE(promises(job));
}

// Its memory is free when who has it ends; who is best-effort ends for it.
TEST_F(Promising, MemoryThatOthersHaveIsNotPromised) {
  auto job = waiting(100, 10, 50);
  job.predicted["cpu"].memory_bytes = 60;
  auto other = running(kSensitive, 100, 100);
  other.share.memory_bytes = 50;
  other.promise_left_s = 100;
  other.left_s = other.left_upper_s = 80;
  LiveUnit unit = unit_with({other});
  unit.whole.memory_bytes = 100;
  nodes_ = {{unit}};
  EXPECT_FALSE(promises(job));
  EXPECT_FALSE(share_->place(nodes_, job));
  job.promise_left_s = 150;
  EXPECT_TRUE(promises(job)) << "after its end";
  job.promise_left_s = 50;
  nodes_[0][0].jobs[0].share.memory_bytes = 40;
  EXPECT_TRUE(promises(job)) << "beside it";
  nodes_[0][0].jobs[0].share.memory_bytes = 50;
  nodes_[0][0].jobs[0].job_class = kBestEffort;
  EXPECT_TRUE(promises(job));
  const auto start = share_->place(nodes_, job);
  ASSERT_TRUE(start) << "what is promised can be kept";
  EXPECT_EQ(start->preempted, std::vector<uint64_t>{1});
  EXPECT_EQ(start->reason, "what keeps its promise, in the place of best-effort jobs");
}

// Of two that are to be promised each has memory of its own.
TEST_F(Promising, WhoWaitsBeforeItHasItsMemory) {
  auto ahead = waiting(100, 40, 50), job = waiting(100, 10, 50);
  ahead.predicted["cpu"].memory_bytes = job.predicted["cpu"].memory_bytes = 60;
  LiveUnit unit = unit_with({});
  unit.whole.memory_bytes = 100;
  nodes_ = {{unit}};
  EXPECT_TRUE(promises(job));
  EXPECT_FALSE(promises(job, {ahead}));
}

// Two that want the same node have it one after the other, whatever the other node has free.
TEST_F(Promising, WhoWantsANodeIsPromisedNothingOfOthers) {
  auto ahead = waiting(1000, 100, 190), job = waiting(1000, 100, 150);
  ahead.only_node = job.only_node = 1;
  EXPECT_TRUE(promises(job));
  EXPECT_FALSE(promises(job, {ahead}));
  job.only_node = 0;
  EXPECT_TRUE(promises(job, {ahead}));
  job.only_node.reset();
  EXPECT_TRUE(promises(job, {ahead}));
}

}  // namespace
}  // namespace tierpilot::sharing
