// What tasks on one GPU are thought to keep beside each other, by what they have shown.
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class GpuNeighbours : public ShareKeeperTest {
 protected:
  GpuNeighbours() {
    auto facts = CoreTest::facts("g1");
    facts.shared_units = {{"gpu/X", 1, 1 << 30, "GPU-a"}};
    EXPECT_TRUE(membership_->join(facts, std::make_shared<FakeNode>(), {}, {}));
  }
  struct Job {
    uint64_t id = 0;
    double use = 0;     // of the GPU
    double step_s = 0;  // 0: it tells no iterations
  };
  // With half of the GPU.
  Job start(const std::string& name, double use, double step_s) {
    auto task = shared(name, 500);
    task.share.engine = Engine::kGpu;
    const Job job{accept(task), use, step_s};
    pump();
    EXPECT_EQ(this->task(job.id).state, TaskState::kRunning);
    return job;
  }
  void run(const std::vector<Job>& jobs, int seconds) {
    for (int s = 0; s < seconds; ++s) {
      pass(1);
      ++second_;
      for (const auto& job : jobs) {
        if (job.step_s > 0)
          keeper_->reported(task(job.id), {.attempt = 1,
                                           .iteration = static_cast<uint64_t>(second_ / job.step_s),
                                           .iterations = 1'000'000});
        keeper_->reported(task(job.id),
                          {.attempt = 1, .cpu_ns = static_cast<uint64_t>(second_ * job.use * 1e9)});
      }
    }
    pass(3);
  }
  SlowDown slow_down(const Job& job) { return keeper_->share_of(job.id)->slow_downs.at(0); }

  double second_ = 0;
};

TEST_F(GpuNeighbours, OfWhomNothingIsKnownTheMeanOfMeasuredPairsIsTaken) {
  const auto a = start("a", 0, 0);
  start("b", 0, 0);
  EXPECT_NEAR(slow_down(a).kept.ln, sharing::measured_gpu_prior().ln, 1e-9);
  EXPECT_THAT(slow_down(a).by, HasSubstr("an H100"));
}

TEST_F(GpuNeighbours, WhatTheyUseTellsWhatTheyKeep) {
  const auto busy = start("busy", 0.45, 0), too = start("too", 0.45, 0);
  // Each waits for its share when it does not compute.
  const auto said = [&](uint64_t id, double used_s, double waited_s) {
    keeper_->reported(task(id), {.attempt = 1,
                                 .cpu_ns = static_cast<uint64_t>(used_s * 1e9),
                                 .waited_ns = static_cast<uint64_t>(waited_s * 1e9)});
  };
  for (int s = 1; s <= 80; ++s) {
    pass(1);
    said(busy.id, 0.5 * s, 0.48 * s);
    said(too.id, 0.5 * s, 0.48 * s);
  }
  pass(3);
  const auto two_busy = slow_down(busy).kept.part();
  EXPECT_THAT(slow_down(busy).by, HasSubstr("an H100"));
  for (int s = 81; s <= 160; ++s) {
    pass(1);
    said(busy.id, 0.5 * s, 0.48 * s);
    said(too.id, 40 + 0.05 * (s - 80), 0.48 * 80);
  }
  pass(3);
  EXPECT_GT(slow_down(busy).kept.part(), two_busy + 0.02);
}

// Each computes for a tenth of the time, and never waits for its share.
TEST_F(GpuNeighbours, WhoMostlyWaitsForItsHostIsThoughtToLoseNothing) {
  const auto one = start("one", 0.1, 0.01), other = start("other", 0.1, 0.5);
  run({one, other}, 80);
  for (const auto& job : {one, other}) {
    EXPECT_GT(slow_down(job).kept.part(), 0.999);
    EXPECT_GT(slow_down(job).kept_by_other.part(), 0.999);
  }
}

}  // namespace
}  // namespace tierpilot::testing
