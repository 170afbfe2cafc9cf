// The C++ header for jobs against the daemon's own end of the channel.
#include "job/tierpilot_job.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/job_node.h"

namespace tierpilot::agent {
namespace {

class JobHeaderTest : public testing::Test {
 protected:
  void pass(int64_t ms = 20) { node_.pass(ms); }
  void beside(const std::function<void()>& job) { node_.beside(job); }

  static constexpr AttemptId kJob = JobNode::kJob;
  JobNode node_;
  JobChannels& channels_ = node_.channels();
  const std::filesystem::path& path_ = node_.socket();
};

TEST_F(JobHeaderTest, ReportsArriveWhole) {
  Job job(path_);
  ASSERT_TRUE(job.connected());
  EXPECT_TRUE(job.report({3, 9, 64, 0.5, {{"accuracy", 0.75}, {"gain", INFINITY}}}));
  pass();
  const auto reports = channels_.take_reports();
  ASSERT_EQ(reports.size(), 1u);
  const auto& progress = reports[0].progress;
  EXPECT_EQ(progress.iteration, 3u);
  EXPECT_EQ(progress.iterations, 9u);
  EXPECT_EQ(progress.samples, 64u);
  EXPECT_EQ(progress.loss, 0.5);
  ASSERT_EQ(progress.measures.size(), 1u) << "what is not finite is left out";
  EXPECT_EQ(progress.measures[0].second, 0.75);
}

TEST_F(JobHeaderTest, ItHearsWhatItIsTold) {
  Job job(path_);
  pass();
  EXPECT_FALSE(job.should_stop());
  EXPECT_FALSE(job.should_checkpoint());
  EXPECT_FALSE(job.cores());
  channels_.set_cores(kJob, 1.5);
  channels_.say(kJob, job_checkpoint_now_line("drain"));
  channels_.say(kJob, job_checkpoint_safe_line(40, 2));
  channels_.say(kJob, "nonsense\n[1]\n{\"type\":7}\n");
  channels_.stop(kJob, "node drains");
  EXPECT_EQ(job.should_stop(), "node drains");
  EXPECT_TRUE(job.should_checkpoint());
  EXPECT_EQ(job.cores(), 1.5);
  EXPECT_EQ(job.checkpoint_safe(), 40u);
}

TEST_F(JobHeaderTest, ACheckpointWaitsForItsAnswer) {
  std::vector<JobCheckpoint> asked;
  channels_.checkpoint = [&](AttemptId attempt, const JobCheckpoint& checkpoint) {
    asked.push_back(checkpoint);
    channels_.say(attempt, checkpoint.iteration == 5
                               ? job_checkpoint_saved_line(5, 10, 1)
                               : job_checkpoint_failed_line(checkpoint.iteration, "no room"));
  };
  Job job(path_);
  beside([&] {
    EXPECT_TRUE(job.checkpoint("state.pt", 5)) << job.checkpoint_error();
    EXPECT_FALSE(job.checkpoint("state.pt", 6));
  });
  EXPECT_EQ(job.checkpoint_error(), "no room");
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].path, "state.pt");
  EXPECT_EQ(asked[0].iteration, 5u);
}

TEST_F(JobHeaderTest, TheIntervalIsKeptToAndAnAskedOneIsSavedOnce) {
  channels_.checkpoint = [&](AttemptId attempt, const JobCheckpoint& checkpoint) {
    channels_.say(attempt, job_checkpoint_saved_line(checkpoint.iteration, 10, 1));
  };
  Job job(path_);
  pass();
  channels_.say(kJob, job_checkpoint_now_line("drain"));
  EXPECT_TRUE(job.should_checkpoint());
  beside([&] { EXPECT_TRUE(job.checkpoint("state.pt", 1)); });
  EXPECT_FALSE(job.should_checkpoint());
  channels_.say(kJob, job_checkpoint_every_line(1e-6, 1, 1));
  EXPECT_TRUE(job.should_checkpoint());
}

TEST_F(JobHeaderTest, OneThatIsNotKeptIsTriedAgainSoonAndNoLaterThanTheInterval) {
  bool room = false;
  channels_.checkpoint = [&](AttemptId attempt, const JobCheckpoint& checkpoint) {
    channels_.say(attempt, room ? job_checkpoint_saved_line(checkpoint.iteration, 10, 1)
                                : job_checkpoint_failed_line(checkpoint.iteration, "no room"));
  };
  Job job(path_);
  pass();
  const auto saves = [&] {
    bool kept = false;
    beside([&] { kept = job.checkpoint("state.pt", 1); });
    return kept;
  };
  channels_.ask_checkpoint(kJob, "drain");
  EXPECT_TRUE(job.should_checkpoint());
  EXPECT_FALSE(saves());
  EXPECT_FALSE(job.should_checkpoint());
  pass(1'100);
  EXPECT_TRUE(job.should_checkpoint());
  EXPECT_FALSE(saves());
  pass(1'100);
  EXPECT_FALSE(job.should_checkpoint()) << "the pause doubles";
  channels_.ask_checkpoint(kJob, "drain");
  EXPECT_TRUE(job.should_checkpoint()) << "whoever asks does not wait for it";
  channels_.say(kJob, job_checkpoint_every_line(0.1, 1, 1));
  EXPECT_TRUE(job.should_checkpoint());
  EXPECT_FALSE(saves());
  pass(150);
  EXPECT_TRUE(job.should_checkpoint());
  room = true;
  channels_.say(kJob, job_checkpoint_every_line(60, 1, 1));
  EXPECT_TRUE(job.should_checkpoint());
  EXPECT_TRUE(saves());
  EXPECT_FALSE(job.should_checkpoint());
}

TEST_F(JobHeaderTest, WhatIsAskedForDuringACheckpointWantsAnother) {
  channels_.checkpoint = [&](AttemptId attempt, const JobCheckpoint& checkpoint) {
    if (checkpoint.iteration == 1) channels_.ask_checkpoint(attempt, "drain");
    channels_.say(attempt, job_checkpoint_saved_line(checkpoint.iteration, 10, 1));
  };
  Job job(path_);
  beside([&] { EXPECT_TRUE(job.checkpoint("state.pt", 1)); });
  EXPECT_TRUE(job.should_checkpoint());
  beside([&] { EXPECT_TRUE(job.checkpoint("state.pt", 2)); });
  EXPECT_FALSE(job.should_checkpoint());
}

TEST_F(JobHeaderTest, ANodeThatDoesNotAnswerOrGoesEndsTheWait) {
  Job job(path_);
  EXPECT_FALSE(job.checkpoint("state.pt", 5, std::chrono::milliseconds(20)));
  EXPECT_EQ(job.checkpoint_error(), "the node did not answer");
  pass();
  channels_.close(kJob);
  EXPECT_FALSE(job.checkpoint("state.pt", 6));
  EXPECT_FALSE(job.connected());
  EXPECT_FALSE(job.report({1}));
}

TEST_F(JobHeaderTest, ANodeThatDoesNotReadNeverMakesItWaitNorTearsALine) {
  Job job(path_);
  JobReportOf large;
  for (int i = 0; i < 1500; ++i)
    large.measures["a measure with a long name " + std::to_string(i)] = i;
  uint64_t& sent = large.iteration;
  while (job.report(large) && sent < 30) ++sent;
  ASSERT_LT(sent, 30u) << "no more than may be told at once";
  std::vector<uint64_t> errors;
  pass(100);
  while (!job.report({sent + 1})) pass(300);
  pass(600);
  const auto reports = channels_.take_reports();
  ASSERT_FALSE(reports.empty());
  EXPECT_LE(reports.back().progress.iteration, sent + 1);
}

TEST_F(JobHeaderTest, NoMoreIsToldInASecondThanANodeReads) {
  Job job(path_);
  const auto began = Job::Clock::now();
  uint64_t sent = 0;
  for (uint64_t i = 1; i <= 2000; ++i) sent += job.report({i, 2000});
  const std::chrono::duration<double> passed = Job::Clock::now() - began;
  EXPECT_GE(sent, 40U);
  EXPECT_LE(static_cast<double>(sent), 42 + 100 * passed.count());
  pass(600);
  const auto reports = channels_.take_reports();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().progress.iteration, 2000U);
}

TEST_F(JobHeaderTest, OnlyACheckpointWaitsForTheNode) {
  std::atomic<bool> asked = false;
  channels_.checkpoint = [&](AttemptId, const JobCheckpoint&) { asked = true; };
  Job job(path_);
  std::atomic<bool> saved = false, back = false;
  std::thread saving([&] {
    saved = job.checkpoint("state.pt", 5, std::chrono::minutes(1));
    back = true;
  });
  for (int i = 0; i < 1000 && !asked; ++i) pass(10);
  ASSERT_TRUE(asked);
  channels_.set_share(kJob, 300);
  for (uint64_t i = 1; i <= 20; ++i) {
    EXPECT_TRUE(job.report({i}));
    EXPECT_FALSE(job.should_stop());
    EXPECT_FALSE(job.should_checkpoint());
    EXPECT_EQ(job.share(), 300);
  }
  EXPECT_FALSE(back);
  pass();
  ASSERT_FALSE(channels_.take_reports().empty());
  channels_.say(kJob, job_checkpoint_saved_line(5, 10, 1));
  EXPECT_FALSE(job.should_stop()) << "may be the one that reads the answer";
  saving.join();
  EXPECT_TRUE(saved) << job.checkpoint_error();
}

TEST_F(JobHeaderTest, CheckpointsOfThreadsTakeTurns) {
  std::vector<uint64_t> asked;
  channels_.checkpoint = [&](AttemptId attempt, const JobCheckpoint& checkpoint) {
    asked.push_back(checkpoint.iteration);
    channels_.say(attempt, checkpoint.iteration % 2
                               ? job_checkpoint_failed_line(checkpoint.iteration, "odd")
                               : job_checkpoint_saved_line(checkpoint.iteration, 10, 1));
  };
  Job job(path_);
  std::array<bool, 4> saved{};
  beside([&] {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < saved.size(); ++i)
      threads.emplace_back([&, i] { saved[i] = job.checkpoint("state.pt", i); });
    for (auto& thread : threads) thread.join();
  });
  EXPECT_EQ(saved, (std::array<bool, 4>{true, false, true, false}));
  EXPECT_EQ(asked.size(), saved.size());
}

TEST(JobAlone, DoesNothing) {
  for (const char* path : {"", "/nonexistent/job.sock"}) {
    Job job(path);
    EXPECT_FALSE(job.connected());
    EXPECT_FALSE(job.report({1}));
    EXPECT_FALSE(job.should_checkpoint());
    EXPECT_FALSE(job.checkpoint("state.pt", 1));
    EXPECT_FALSE(job.should_stop());
    EXPECT_EQ(job.restored(), "");
  }
}

}  // namespace
}  // namespace tierpilot::agent
