// The DAMON tracker and its way through files, on a made-up machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>

#include "base/unique_fd.h"
#include "daemon/memory/damon/files.h"
#include "daemon/memory/heat/damon.h"
#include "tests/unit/memory/damon_machine.h"

namespace {

// A kernel that serves another: the next `times` writes to paths that end in `file` fail.
struct {
  std::string_view file;
  int times = 0;
} busy;

}  // namespace

// Stands before the C library's.
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  if (busy.times > 0) {
    char path[512];
    const auto link = fmt::format("/proc/self/fd/{}", fd);
    const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
    if (length > 0 && std::string_view(path, static_cast<size_t>(length)).ends_with(busy.file)) {
      --busy.times;
      errno = EBUSY;
      return -1;
    }
  }
  return ::syscall(SYS_write, fd, data, size);
}

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

struct DamonTest : DamonMachine {
  // By files alone, and with one kdamond.
  DamonSource one_by_files(DamonOptions options = {}) {
    std::vector<std::unique_ptr<DamonAccess>> ways;
    ways.push_back(std::make_unique<DamonFiles>(sysroot, DamonFilesOptions{.max_processes = 1}));
    return {std::move(ways), options};
  }
};

TEST_F(DamonTest, IsUnavailableWithoutTheInterface) {
  EXPECT_THAT(DamonSource(sysroot).offer().available.error().message,
              HasSubstr("CONFIG_DAMON_SYSFS"));
}

TEST_F(DamonTest, LeavesTheKdamondsOfOthersAlone) {
  make_damon("1");
  DamonSource source(sysroot);
  EXPECT_THAT(source.offer().available.error().message, HasSubstr("in use"));
  EXPECT_FALSE(source.open());
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "1");
  EXPECT_FALSE(sysroot.exists("/run/tierpilot-damon/claim"));
}

TEST_F(DamonTest, WatchesAProcessAndGivesEverythingBack) {
  make_damon();
  {
    auto source = one_by_files({.attrs = {.sample_us = 1000, .aggregation_us = 100'000}});
    ASSERT_TRUE(source.offer().available);
    auto tracker = source.make(42).value();
    ASSERT_TRUE(tracker->start());
    EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "1");
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/operations"), "vaddr");
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/targets/0/pid_target"), "42");
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/schemes/0/action"), "stat");
    EXPECT_EQ(read(kKdamonds + "0/state"), "on");
    EXPECT_EQ(source.make(43).value()->start().error().code, ErrorCode::kExhausted);
    EXPECT_EQ(source.offer().way, "through its files");

    add_region(0, 4096, 8192, 0);
    add_region(2, 1 << 20, 2 << 20, 100);
    add_region(10, 8192, 16384, 20);
    write(kKdamonds + "0/contexts/0/schemes/0/tried_regions/total_bytes", "9");
    const auto samples = tracker->sample({}).value();
    ASSERT_EQ(samples.size(), 2U) << "sorted, and without what was not accessed";
    EXPECT_EQ(samples[0].start, 8192U);
    EXPECT_FLOAT_EQ(samples[0].accesses_per_page_s, 1000 * std::log(100 / 80.0));
    EXPECT_FLOAT_EQ(samples[1].accesses_per_page_s, 1000 * std::log(200.0)) << "at most";
    write(kKdamonds + "0/state", "on");
  }
  EXPECT_EQ(read(kKdamonds + "0/state"), "off");
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
  EXPECT_FALSE(sysroot.exists("/run/tierpilot-damon/claim"));
}

TEST_F(DamonTest, LooksLessOftenWithLessCpuTime) {
  make_damon();
  auto source = one_by_files({.attrs = {.sample_us = 5000, .aggregation_us = 200'000},
                              .slowest_sample_us = 50'000,
                              .min_checks = 20});
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  EXPECT_DOUBLE_EQ(tracker->observed_s(), 0.2);
  const std::string intervals = kKdamonds + "0/contexts/0/monitoring_attrs/intervals/";
  tracker->scale_effort(0.25);
  EXPECT_EQ(read(intervals + "sample_us"), "20000");
  EXPECT_EQ(read(intervals + "aggr_us"), "400000");
  EXPECT_EQ(read(kKdamonds + "0/state"), "commit");
  EXPECT_DOUBLE_EQ(tracker->observed_s(), 0.4);
  tracker->scale_effort(0.01);
  EXPECT_EQ(read(intervals + "sample_us"), "50000") << "no less often than that";
  tracker->scale_effort(1000);
  EXPECT_EQ(read(intervals + "sample_us"), "5000");
  EXPECT_EQ(read(intervals + "aggr_us"), "200000");
}

TEST_F(DamonTest, IntervalsThatWereRefusedAreNotReckonedWith) {
  make_damon();
  auto source = one_by_files({.attrs = {.sample_us = 5000, .aggregation_us = 200'000}});
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  const std::string interval = kKdamonds + "0/contexts/0/monitoring_attrs/intervals/sample_us";
  std::filesystem::remove(sysroot.resolve(interval));
  tracker->scale_effort(0.25);
  EXPECT_DOUBLE_EQ(tracker->observed_s(), 0.2);
  write(interval, "5000");
  tracker->scale_effort(0.25);
  EXPECT_DOUBLE_EQ(tracker->observed_s(), 0.4);
}

// As the keeper serves a client without CAP_SYS_PTRACE.
struct PlainAccess final : DamonAccess {
  struct Monitor final : DamonMonitor {
    Monitor(DamonAttrs& attrs, int& denied) : attrs(attrs), denied(denied) {}
    Result<DamonReading> read() override { return DamonReading{}; }
    Status set_intervals(int64_t sample_us, int64_t aggregation_us) override {
      auto wanted = attrs;
      wanted.sample_us = sample_us;
      wanted.aggregation_us = aggregation_us;
      auto status = check_plain(wanted);
      denied += !status;
      if (status) attrs = wanted;
      return status;
    }
    DamonAttrs& attrs;
    int& denied;
  };
  explicit PlainAccess(DamonAttrs& attrs, int& denied) : attrs(attrs), denied(denied) {}
  std::string_view way() const override { return "through a test"; }
  Status check() const override { return {}; }
  Status open() override { return {}; }
  Result<std::unique_ptr<DamonMonitor>> watch(pid_t, const DamonAttrs& wanted) override {
    attrs = wanted;
    return std::make_unique<Monitor>(attrs, denied);
  }
  DamonAttrs& attrs;
  int& denied;
};

TEST(DamonOfOthers, LooksLessOftenWhereAggregationsMustBeShort) {
  DamonAttrs attrs;
  int denied = 0;
  std::vector<std::unique_ptr<DamonAccess>> ways;
  ways.push_back(std::make_unique<PlainAccess>(attrs, denied));
  DamonSource source(std::move(ways), {});
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  tracker->scale_effort(0.25);
  EXPECT_EQ(attrs.sample_us, 20'000);
  EXPECT_EQ(attrs.aggregation_us, 250'000);
  EXPECT_DOUBLE_EQ(tracker->observed_s(), 0.25);
  tracker->scale_effort(0.5);
  EXPECT_EQ(attrs.sample_us, 40'000);
  EXPECT_EQ(denied, 1) << "what is denied is asked for once";
  tracker->scale_effort(100);
  EXPECT_EQ(attrs, DamonAttrs()) << "and back to all";
}

TEST_F(DamonTest, MissingFilesOfDamonAreNoProcessThatHasEnded) {
  make_damon();
  auto source = one_by_files();
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  add_region(0, 0, 4096, 1);
  const auto region = kKdamonds + "0/contexts/0/schemes/0/tried_regions/";
  for (const auto& gone : {region + "0/end", region, kKdamonds + "0"}) {
    std::filesystem::remove_all(sysroot.resolve(gone));
    const auto seen = tracker->sample({});
    ASSERT_FALSE(seen) << gone;
    EXPECT_EQ(seen.error().code, ErrorCode::kUnavailable) << seen.error().message;
    EXPECT_THAT(seen.error().message, HasSubstr("is missing"));
  }
  std::filesystem::remove_all(sysroot.resolve("/proc/42"));
  EXPECT_EQ(tracker->sample({}).error().code, ErrorCode::kNotFound);
}

TEST_F(DamonTest, AKdamondThatSomebodyRemovedIsOff) {
  make_damon();
  auto source = one_by_files();
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  const auto kdamond = sysroot.resolve(kKdamonds + "0"), kept = sysroot.resolve("/kept");
  std::filesystem::rename(kdamond, kept);
  tracker->stop();
  std::filesystem::rename(kept, kdamond);
  EXPECT_TRUE(source.make(43).value()->start()) << "its place is free";
}

TEST_F(DamonTest, ABusyKernelIsAskedAgain) {
  make_damon();
  auto source = one_by_files();
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  busy = {.file = "/0/state", .times = 3};
  EXPECT_TRUE(tracker->sample({}));
  EXPECT_EQ(busy.times, 0);
  busy = {.file = "/0/state", .times = 1'000'000};
  EXPECT_FALSE(tracker->sample({})) << "but not for ever";
  busy = {};
}

TEST_F(DamonTest, AKdamondThatCouldNotBeTurnedOffIsNotUsedAgain) {
  make_damon();
  auto source = one_by_files();
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  busy = {.file = "/0/state", .times = 1'000'000};
  tracker->stop();
  busy = {};
  EXPECT_EQ(source.make(43).value()->start().error().code, ErrorCode::kExhausted);
}

TEST_F(DamonTest, TheClaimStaysWhileTheKdamondsDo) {
  make_damon();
  {
    auto source = one_by_files();
    ASSERT_TRUE(source.open());
    busy = {.file = "/nr_kdamonds", .times = 1'000'000};
  }
  busy = {};
  EXPECT_EQ(read("/run/tierpilot-damon/claim"), "boot-1");
  const DamonSource next(sysroot);
  EXPECT_FALSE(sysroot.exists("/run/tierpilot-damon/claim")) << "the next one removes both";
}

TEST_F(DamonTest, AKernelThatDoesNotTellRegionsIsUnavailable) {
  make_damon();
  std::filesystem::remove(sysroot.resolve(kKdamonds + "0/contexts/0/schemes/0/tried_regions"));
  {
    DamonSource source(sysroot);
    const auto opened = source.open();
    EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(opened.error().message, HasSubstr("needs kernel 6.2"));
  }
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
}

TEST_F(DamonTest, ASampleNeedsAStart) {
  make_damon();
  auto source = one_by_files();
  auto tracker = source.make(42).value();
  EXPECT_EQ(tracker->sample({}).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(tracker->start());
  tracker->stop();
  EXPECT_EQ(read(kKdamonds + "0/state"), "off");
  EXPECT_EQ(tracker->sample({}).error().code, ErrorCode::kConflict);
}

TEST_F(DamonTest, GarbageOfTheKernelIsAnError) {
  make_damon();
  auto source = one_by_files();
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  add_region(0, 0, 4096, 1);
  write(kKdamonds + "0/contexts/0/schemes/0/tried_regions/0/end", "12x");
  EXPECT_EQ(tracker->sample({}).error().code, ErrorCode::kInvalid);
}

TEST_F(DamonTest, TakesOverWhatAKilledPredecessorLeft) {
  make_damon("1");
  write(kKdamonds + "0/state", "on");
  write("/run/tierpilot-damon/claim", "boot-1");
  auto source = one_by_files();
  EXPECT_TRUE(source.open());
  EXPECT_EQ(read(kKdamonds + "0/state"), "off");
}

TEST_F(DamonTest, WhatAKilledPredecessorLeftIsTurnedOffByWhoLooksNext) {
  make_damon("1");
  write(kKdamonds + "0/state", "on");
  write("/run/tierpilot-damon/claim", "boot-1");
  const DamonSource source(sysroot);
  EXPECT_EQ(read(kKdamonds + "0/state"), "off");
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
  EXPECT_FALSE(sysroot.exists("/run/tierpilot-damon/claim"));
}

TEST_F(DamonTest, TakesOverNothingOfAnEarlierBootOrALivingOne) {
  make_damon("1");
  write("/run/tierpilot-damon/claim", "boot-0");
  EXPECT_FALSE(DamonSource(sysroot).offer().available);
  write("/run/tierpilot-damon/claim", "boot-1");
  const UniqueFd living(
      ::open(sysroot.resolve("/run/tierpilot-damon/claim").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(living.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(DamonSource(sysroot).offer().available);
}

TEST_F(DamonTest, AKernelWithoutVirtualAddressesIsPutBackAsItWas) {
  make_damon();
  write(kKdamonds + "0/contexts/0/avail_operations", "paddr\n");
  {
    DamonSource source(sysroot);
    EXPECT_THAT(source.open().error().message, HasSubstr("CONFIG_DAMON_VADDR"));
  }
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
}

}  // namespace
}  // namespace tierpilot
