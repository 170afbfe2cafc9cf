// Job channels take what a job says, and nothing that it does harms the daemon.
#include "daemon/agent/job_channel/job_channels.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>

#include "base/unique_fd.h"

static std::atomic<int> accept_tries = 0;

// In front of the one of the C library.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  ++accept_tries;
  static const auto real = reinterpret_cast<decltype(&accept4)>(::dlsym(RTLD_NEXT, "accept4"));
  return real(fd, address, bytes, flags);
}

namespace tierpilot::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr AttemptId kJob{7, 2};

class JobChannelTest : public testing::Test {
 protected:
  JobChannelTest() {
    std::string folder = "/tmp/tierpilot-job-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    const auto path = channels_.open(kJob, folder_);
    if (!path) throw std::runtime_error(path.error().message);
    path_ = *path;
  }
  ~JobChannelTest() override { std::filesystem::remove_all(folder_); }

  UniqueFd connect() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect_to(fd);
    return fd;
  }
  void connect_to(const UniqueFd& fd) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    pass();
  }
  // False: it would have to wait, or nobody is there.
  static bool say(const UniqueFd& fd, const std::string& text) {
    return ::send(fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  static std::string line(uint64_t iteration) {
    return R"({"v":1,"type":"progress","iteration":)" + std::to_string(iteration) + "}\n";
  }
  std::string told(const UniqueFd& fd) {
    pass();
    char buffer[4096];
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "";
  }
  bool is_closed(const UniqueFd& fd) {
    pass();
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  void pass(int64_t ms = 20) { loop_.after_ms(ms).wait(loop_.wait_scope()); }

  EventLoop loop_;
  ManualClock clock_;
  JobChannels channels_{loop_, clock_};
  std::filesystem::path folder_, path_;
};

// As long as it lives this process opens no more files.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit full = before_;
    full.rlim_cur = static_cast<rlim_t>(next.get());
    ::setrlimit(RLIMIT_NOFILE, &full);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(JobChannelTest, AJobThatThereIsNoDescriptorForWaitsAndTheDaemonDoesNotSpin) {
  UniqueFd job(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const NoMoreDescriptors full;
    accept_tries = 0;
    connect_to(job);
    pass(1'000);
    EXPECT_GE(accept_tries, 2) << "it tries again";
    EXPECT_LE(accept_tries, 20) << "and pauses in between";
  }
  channels_.set_cores(kJob, 1.5);
  pass(500);
  EXPECT_THAT(told(job), HasSubstr(R"("cores":1.5)"));
}

TEST_F(JobChannelTest, AChannelMayCloseWhileThereIsNoDescriptorForItsJob) {
  UniqueFd job(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const NoMoreDescriptors full;
  connect_to(job);
  channels_.close(kJob);
  pass(300);
  EXPECT_TRUE(is_closed(job) || errno == ECONNRESET);
}

TEST_F(JobChannelTest, TellsHowManyCoresThereAreAlsoToThoseThatComeLater) {
  const auto early = connect();
  channels_.set_cores(kJob, 1.5);
  EXPECT_THAT(told(early), HasSubstr(R"("cores":1.5)"));
  channels_.set_cores(kJob, 0.25);
  EXPECT_THAT(told(early), HasSubstr(R"("cores":0.25)"));
  const auto late = connect();
  const auto lines = told(late);
  EXPECT_THAT(lines, HasSubstr(R"("cores":0.25)"));
  EXPECT_THAT(lines, ::testing::Not(HasSubstr("1.5")));
}

TEST_F(JobChannelTest, AJobSaysThatItTakesCheckpoints) {
  const auto job = connect();
  ASSERT_TRUE(say(job, line(1)));
  pass();
  EXPECT_FALSE(channels_.takes_checkpoints(kJob));
  ASSERT_TRUE(say(job, "{\"v\":1,\"type\":\"takes_checkpoints\"}\n" + line(2)));
  EXPECT_EQ(told(job), "") << "nothing is wrong";
  EXPECT_TRUE(channels_.takes_checkpoints(kJob));
  const auto reports = channels_.take_reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_FALSE(reports[0].takes_checkpoints);
  EXPECT_TRUE(reports[1].takes_checkpoints);
  channels_.close(kJob);
  EXPECT_FALSE(channels_.takes_checkpoints(kJob));
}

TEST_F(JobChannelTest, AReportSaysWhatCpuTimeWasUsedUntilThen) {
  channels_.cpu_ns = [](AttemptId attempt) { return attempt == kJob ? 42u : 0u; };
  const auto job = connect();
  ASSERT_TRUE(say(job, line(1)));
  pass();
  const auto reports = channels_.take_reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].cpu_ns, 42u);
}

TEST_F(JobChannelTest, TellsEachReportOnce) {
  const auto job = connect();
  ASSERT_TRUE(say(job, line(1) + line(2)));
  pass();
  const auto reports = channels_.take_reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].attempt, kJob);
  EXPECT_EQ(reports[0].progress.iteration, 1u);
  EXPECT_EQ(reports[1].progress.iteration, 2u);
  EXPECT_THAT(channels_.take_reports(), IsEmpty());
}

TEST_F(JobChannelTest, ManyReportsAreThinnedAndTheNewestIsAmongThem) {
  const auto job = connect();
  std::string lines;
  for (uint64_t i = 1; i <= 40; ++i) lines += line(i);
  ASSERT_TRUE(say(job, lines));
  pass();
  const auto reports = channels_.take_reports();
  EXPECT_LE(reports.size(), JobChannels::kMostReports);
  EXPECT_GE(reports.size(), JobChannels::kMostReports / 2);
  EXPECT_EQ(reports.front().progress.iteration, 1u);
  EXPECT_EQ(reports.back().progress.iteration, 40u);
  for (size_t i = 1; i < reports.size(); ++i)
    EXPECT_GT(reports[i].progress.iteration, reports[i - 1].progress.iteration);
}

TEST_F(JobChannelTest, LinesMayComeInPieces) {
  const auto job = connect();
  const auto whole = line(5);
  ASSERT_TRUE(say(job, whole.substr(0, 9)));
  pass();
  EXPECT_THAT(channels_.take_reports(), IsEmpty());
  ASSERT_TRUE(say(job, whole.substr(9)));
  pass();
  EXPECT_EQ(channels_.take_reports().at(0).progress.iteration, 5u);
}

TEST_F(JobChannelTest, WhatWasSaidLastIsToldAlsoWhenTheJobHasEnded) {
  auto job = connect();
  ASSERT_TRUE(say(job, line(8)));
  channels_.close(kJob);
  EXPECT_EQ(channels_.take_reports().at(0).progress.iteration, 8u);
  EXPECT_TRUE(is_closed(job));
}

TEST_F(JobChannelTest, AJobIsToldToStopAlsoIfItConnectsLater) {
  const auto job = connect();
  channels_.stop(kJob, "cancelled");
  EXPECT_THAT(told(job), HasSubstr(R"("reason":"cancelled")"));
  EXPECT_THAT(told(connect()), HasSubstr("stop"));
}

TEST_F(JobChannelTest, AJobIsAskedForACheckpointAlsoIfItConnectsLaterUntilOneIsSaved) {
  const auto job = connect();
  channels_.ask_checkpoint(kJob, "drain");
  EXPECT_THAT(told(job), HasSubstr(R"("reason":"drain")"));
  EXPECT_THAT(told(connect()), HasSubstr("checkpoint_now"));
  channels_.checkpoint_saved(kJob, job_checkpoint_saved_line(3, 10, 1));
  EXPECT_THAT(told(job), HasSubstr("checkpoint_saved"));
  EXPECT_EQ(told(connect()), "");
}

TEST_F(JobChannelTest, ALineThatIsTooLongEndsTheConnectionAndNothingElse) {
  const auto other = connect();
  const auto job = connect();
  const std::string part(8'000, 'x');
  for (int i = 0; i < 20 && say(job, part); ++i) pass(2);
  EXPECT_THAT(told(job), HasSubstr("65536 bytes"));
  EXPECT_TRUE(is_closed(job));
  ASSERT_TRUE(say(other, line(1)));
  pass();
  EXPECT_EQ(channels_.take_reports().size(), 1u);
}

// Its end comes with the read that goes beyond what is taken.
TEST_F(JobChannelTest, ALineThatIsTooLongAndWholeIsNotTaken) {
  const auto padded = [](size_t bytes) {
    std::string text = R"({"v":1,"type":"progress","iteration":7,"x":")";
    return text + std::string(bytes - text.size() - 2, 'x') + "\"}";
  };
  const auto job = connect();
  ASSERT_TRUE(say(job, padded(kMaxJobLineBytes) + "\n"));
  pass(20);
  EXPECT_EQ(channels_.take_reports().size(), 1u);
  EXPECT_EQ(told(job), "");
  ASSERT_TRUE(say(job, padded(kMaxJobLineBytes + 1) + "\n"));
  pass(20);
  EXPECT_TRUE(channels_.take_reports().empty());
  EXPECT_THAT(told(job), HasSubstr("65536 bytes"));
  EXPECT_TRUE(is_closed(job));
}

TEST_F(JobChannelTest, WhoSaysTooMuchHasToWaitAndIsReadToTheEnd) {
  const auto job = connect();
  uint64_t sent = 0;
  while (sent < 1'000'000 && say(job, line(sent + 1))) ++sent;
  ASSERT_LT(sent, 1'000'000u) << "it never had to wait";
  pass();
  EXPECT_LE(channels_.take_reports().back().progress.iteration,
            JobChannels::kMaxLinesPerPeriod * 2);
  pass(3 * JobChannels::kPeriodMs);
  EXPECT_GT(channels_.take_reports().back().progress.iteration,
            JobChannels::kMaxLinesPerPeriod * 2);
}

TEST_F(JobChannelTest, ConnectionsAreBoundedAndMakeRoomWhenTheyEnd) {
  std::vector<UniqueFd> jobs;
  for (size_t i = 0; i < JobChannels::kMaxConnections; ++i) jobs.push_back(connect());
  const auto more = connect();
  // So many come in a period.
  pass((JobChannels::kMaxConnections / JobChannels::kMaxAcceptsPerPeriod + 1) *
       JobChannels::kPeriodMs);
  EXPECT_THAT(told(more), HasSubstr("connections"));
  EXPECT_TRUE(is_closed(more));
  jobs.pop_back();
  pass();
  const auto next = connect();
  ASSERT_TRUE(say(next, line(3)));
  pass(2 * JobChannels::kPeriodMs);
  EXPECT_EQ(channels_.take_reports().size(), 1u);
}

// As under torchrun, which starts a process for each GPU of a node.
TEST_F(JobChannelTest, EachProcessOfALauncherIsHeardAndTold) {
  std::vector<UniqueFd> ranks;
  for (int i = 0; i < 16; ++i) ranks.push_back(connect());
  for (size_t i = 0; i < ranks.size(); ++i) ASSERT_TRUE(say(ranks[i], line(i + 1)));
  pass(2 * JobChannels::kPeriodMs);
  EXPECT_EQ(channels_.take_reports().size(), ranks.size());
  channels_.stop(kJob, "asked");
  pass();
  for (const auto& rank : ranks) EXPECT_THAT(told(rank), HasSubstr("asked"));
}

TEST_F(JobChannelTest, ManyConnectionsSayNoMoreThanFew) {
  size_t heard = 0;
  channels_.cpu_ns = [&](AttemptId) { return ++heard; };
  std::vector<UniqueFd> jobs;
  for (size_t i = 0; i < JobChannels::kMaxConnections; ++i) jobs.push_back(connect());
  pass(8 * JobChannels::kPeriodMs);  // until all are taken
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& job : jobs)
    for (size_t each = 0; each < JobChannels::kMaxLinesPerPeriod; ++each) say(job, line(1));
  pass(3 * JobChannels::kPeriodMs);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const auto periods = static_cast<size_t>(took.count() / JobChannels::kPeriodMs) + 1;
  EXPECT_LE(heard, periods * JobChannels::kMostLinesPerPeriod);
  EXPECT_GE(heard, jobs.size()) << "each has its turn";
}

TEST_F(JobChannelTest, WhoSaysTooMuchByConnectingAgainHasToWaitAsWell) {
  size_t heard = 0;
  channels_.cpu_ns = [&](AttemptId) { return ++heard; };
  const auto begin = std::chrono::steady_clock::now();
  size_t connected = 0;
  for (int i = 0; i < 300; ++i) {
    UniqueFd job(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    if (::connect(job.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      ++connected;
      for (size_t each = 0; each < JobChannels::kMaxLinesPerPeriod; ++each) say(job, line(1));
    }
    pass(1);
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const auto periods = static_cast<size_t>(took.count() / JobChannels::kPeriodMs) + 1;
  EXPECT_LE(heard, periods * JobChannels::kMaxAcceptsPerPeriod * JobChannels::kMaxLinesPerPeriod);
  EXPECT_LT(connected, 300u) << "none had to wait";
  pass(3 * JobChannels::kPeriodMs);
  const size_t before = heard;
  ASSERT_TRUE(say(connect(), line(2)));
  pass(2 * JobChannels::kPeriodMs);
  EXPECT_GT(heard, before);
}

TEST_F(JobChannelTest, AWrongLineIsAnsweredAndTheNextOneCounts) {
  const auto job = connect();
  ASSERT_TRUE(say(job, "nonsense\n" + line(4)));
  EXPECT_THAT(told(job), HasSubstr("error"));
  EXPECT_EQ(channels_.take_reports().at(0).progress.iteration, 4u);
}

TEST_F(JobChannelTest, APathThatIsTooLongForASocketIsRefused) {
  const auto refused = channels_.open({8, 1}, folder_ / std::string(120, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("work_dir"));
}

}  // namespace
}  // namespace tierpilot::agent
