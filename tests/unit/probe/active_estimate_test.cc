#include "daemon/probe/loops/estimate.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/probe/active/interference.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot {
namespace {

const Surroundings kQuiet{.cpus = 4, .load_1min = 0.1, .others_cpu_share = 0.01};

TEST(Estimate, Spread) {
  EXPECT_DOUBLE_EQ(spread({90, 100, 110}), 0.2);
  EXPECT_EQ(spread({5}), 0);
}

TEST(Estimate, QuantilesAreExact) {
  const LatencyCounts counts{{300, 1}, {100, 50}, {101, 49}};
  EXPECT_EQ(weighted_quantile(counts, 0.5), 100);
  EXPECT_EQ(weighted_quantile(counts, 0.51), 101);
  EXPECT_EQ(weighted_quantile(counts, 0.99), 101);
  EXPECT_EQ(weighted_quantile(counts, 1), 300);
  EXPECT_EQ(weighted_quantile({}, 0.5), 0);
}

TEST(Estimate, BucketsKeepEveryCount) {
  const auto buckets = bucketed({{1000, 3}, {1001, 4}, {5, 1}, {1001, 2}});
  EXPECT_EQ(buckets, (LatencyCounts{{5, 1}, {992, 9}}));
}

TEST(Quality, GoodNeedsRoundsThatAgreeOnAQuietMachine) {
  EXPECT_EQ(assess(0.05, 3, kQuiet).grade, Grade::kGood);
  EXPECT_EQ(assess(0.05, 2, kQuiet).grade, Grade::kFair);
  EXPECT_EQ(assess(0.2, 5, kQuiet).grade, Grade::kFair);
  EXPECT_EQ(assess(0.5, 5, kQuiet).grade, Grade::kNoisy);
}

TEST(Quality, ASingleRoundIsNeverGood) {
  const auto quality = assess(0, 1, kQuiet);
  EXPECT_EQ(quality.grade, Grade::kNoisy);
  EXPECT_NE(quality.reason.find("single round"), std::string::npos);
}

TEST(Quality, ABusyMachineIsNeverGoodHoweverWellRoundsAgree) {
  auto around = kQuiet;
  around.others_cpu_share = 0.4;
  EXPECT_EQ(assess(0.01, 9, around).grade, Grade::kFair);
  around.others_cpu_share = 0.9;
  EXPECT_EQ(assess(0.01, 9, around).grade, Grade::kNoisy);
  EXPECT_NE(assess(0.01, 9, around).reason.find("90 % of the CPUs"), std::string::npos);
}

TEST(Quality, TheLoadAverageStandsInWhereTheShareIsNotKnown) {
  const Surroundings loaded{.cpus = 2, .load_1min = 4};
  EXPECT_EQ(assess(0.01, 3, loaded).grade, Grade::kNoisy);
  EXPECT_NE(assess(0.01, 3, loaded).reason.find("load 4.00 on 2 CPUs"), std::string::npos);
  EXPECT_EQ(assess(0.01, 3, {.cpus = 2, .load_1min = 0.2}).grade, Grade::kGood);
}

TEST(Quality, NothingMeasuredIsNoisy) {
  EXPECT_EQ(assess(0, 0, kQuiet).grade, Grade::kNoisy);
}

void write_stat(const ScratchDirectory& root, const std::string& text) {
  std::filesystem::create_directories(root.path() + "/proc");
  std::ofstream(root.path() + "/proc/stat") << text;
}

TEST(Interference, CountsBusyAndStolenTimeOfOthers) {
  const ScratchDirectory root;
  write_stat(root, "cpu  100 0 100 1000 50 0 0 0 0 0\n");
  const Interference interference{Sysroot(root.path())};
  write_stat(root, "cpu  20100 0 100 51000 50 0 0 30000 0 0\n");
  const auto share = interference.surroundings().others_cpu_share;
  ASSERT_TRUE(share);
  EXPECT_NEAR(*share, 0.5, 0.01) << "50,000 of 100,000 ticks, less what this test took";
}

TEST(Interference, IsNotKnownWithoutStatOrOverTooShortATime) {
  const ScratchDirectory root;
  EXPECT_FALSE(Interference{Sysroot(root.path())}.surroundings().others_cpu_share);
  for (const char* text : {"cpu  1 2\n", "intr 5\n", "", "cpu  1 0 1 1 1 0 0 0 0 0\n"}) {
    write_stat(root, text);
    EXPECT_FALSE(Interference{Sysroot(root.path())}.surroundings().others_cpu_share) << text;
  }
}

// A machine whose /proc/stat says what it is told, while this process works for real.
class InterferenceTest : public testing::Test {
 protected:
  void say(uint64_t busy_ticks, uint64_t idle_ticks) {
    std::filesystem::create_directories(root_.path() + "/proc");
    std::ofstream(root_.path() + "/proc/stat")
        << "cpu  " << busy_ticks << " 0 0 " << idle_ticks << " 0 0 0 0 0 0\n";
  }
  static double own_cpu_s() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  }
  ScratchDirectory root_;
};

TEST_F(InterferenceTest, OwnWorkIsNotOthers) {
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  say(1000, 1000);
  const Interference interference{Sysroot(root_.path())};
  const double before_s = own_cpu_s();
  while (own_cpu_s() < before_s + 0.3) {
  }
  // The machine was busy for one second of two, 0.3 of it by this process.
  say(1000 + static_cast<uint64_t>(ticks), 1000 + static_cast<uint64_t>(ticks));
  const auto around = interference.surroundings();
  EXPECT_GE(around.cpus, 1);
  ASSERT_TRUE(around.others_cpu_share);
  EXPECT_NEAR(*around.others_cpu_share, 0.35, 0.05);
}

}  // namespace
}  // namespace tierpilot
