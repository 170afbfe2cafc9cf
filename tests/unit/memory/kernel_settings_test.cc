#include "daemon/memory/paging/kernel_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tierpilot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KernelSettingsTest : public ::testing::Test {
 protected:
  KernelSettingsTest() {
    std::string name = (fs::temp_directory_path() / "tierpilot-settings-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~KernelSettingsTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const auto real = Sysroot(root_).resolve(path);
    fs::create_directories(real.parent_path());
    std::ofstream(real) << text << '\n';
  }
  std::vector<std::string> conflicts(PagingMode mode = PagingMode::kEnforce,
                                     bool own_kdamonds = false) const {
    return find_conflicts(read_kernel_settings(Sysroot(root_)), mode, own_kdamonds);
  }

  fs::path root_;
};

TEST_F(KernelSettingsTest, AKernelWithoutAnyOfThemIsNoConflict) {
  EXPECT_THAT(conflicts(), IsEmpty());
}

TEST_F(KernelSettingsTest, WhatWorksAgainstPlacementIsNamedWithItsValue) {
  write("/proc/sys/kernel/numa_balancing", "2");
  write("/sys/kernel/mm/numa/demotion_enabled", "true");
  write("/proc/sys/vm/zone_reclaim_mode", "1");
  write("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "3");
  write("/sys/kernel/mm/ksm/run", "1");
  EXPECT_THAT(conflicts(),
              ElementsAre(AllOf(HasSubstr("numa_balancing is 2"), HasSubstr("promotes")),
                          HasSubstr("demotion_enabled"), HasSubstr("zone_reclaim_mode is 1"),
                          HasSubstr("3 kdamonds"), HasSubstr("KSM")));
  EXPECT_THAT(conflicts(PagingMode::kObserve), IsEmpty());
}

TEST_F(KernelSettingsTest, OwnKdamondsAreNoConflict) {
  write("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1");
  EXPECT_THAT(conflicts(PagingMode::kEnforce, true), IsEmpty());
}

TEST_F(KernelSettingsTest, KernelsThatHidePagesThatWaitForAHintFaultAreNamed) {
  const auto hides = [&](const std::string& release, const std::string& balancing) {
    write("/proc/sys/kernel/osrelease", release);
    write("/proc/sys/kernel/numa_balancing", balancing);
    for (const auto& conflict : conflicts())
      if (conflict.find("hides pages") != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(hides("6.1.0-56-cloud-amd64", "1"));
  EXPECT_TRUE(hides("6.4.12", "2"));
  EXPECT_FALSE(hides("6.1.0-56-cloud-amd64", "0"));
  for (const auto* release : {"6.0.9", "5.15.0-1", "6.5.0", "6.12.1", "7.1", "6", "6.", "", "x.y"})
    EXPECT_FALSE(hides(release, "1")) << release;
}

}  // namespace
}  // namespace tierpilot
