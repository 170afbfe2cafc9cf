#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "daemon/probe/inventory/inventory_holders.h"
#include "daemon/probe/inventory/map_dump.h"
#include "daemon/probe/passive/feature_probe.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

class PassiveFeatures : public testing::Test {
 protected:
  PassiveFeatures() {
    std::string name = (fs::temp_directory_path() / "tierpilot-features-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~PassiveFeatures() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const auto real = Sysroot(root_).resolve(path);
    fs::create_directories(real.parent_path());
    std::ofstream(real) << text << '\n';
  }

  FeatureReport feature(const std::string& name) const {
    for (const auto& report : read_feature_files(Sysroot(root_)))
      if (report.feature == name) return report;
    ADD_FAILURE() << "no feature " << name;
    return {};
  }

  fs::path root_;
};

TEST_F(PassiveFeatures, EmptyMachineHasAReasonForEverythingOff) {
  for (const auto& report : read_feature_files(Sysroot(root_))) {
    if (report.on) continue;
    EXPECT_TRUE(report.reason.starts_with("unavailable: ")) << report.feature << report.reason;
  }
}

TEST_F(PassiveFeatures, OnlyConfidentialityTakesKernelReads) {
  write("/sys/kernel/security/lockdown", "none [integrity] confidentiality");
  EXPECT_TRUE(feature("kernel reads (lockdown)").on);
  write("/sys/kernel/security/lockdown", "none integrity [confidentiality]");
  EXPECT_FALSE(feature("kernel reads (lockdown)").on);
}

TEST_F(PassiveFeatures, KernelSettingsAreQuoted) {
  write("/proc/sys/kernel/perf_event_paranoid", "3");
  write("/proc/sys/kernel/unprivileged_bpf_disabled", "0");
  write("/proc/sys/kernel/bpf_stats_enabled", "1");
  EXPECT_FALSE(feature("perf events without CAP_PERFMON").on);
  EXPECT_NE(feature("perf events without CAP_PERFMON").reason.find("perf_event_paranoid is 3"),
            std::string::npos);
  EXPECT_TRUE(feature("BPF without CAP_BPF").on);
  EXPECT_TRUE(feature("BPF run time statistics").on);
}

TEST_F(PassiveFeatures, TieredMachineIsRecognised) {
  write("/sys/devices/system/node/has_memory", "0-1");
  write("/proc/sys/kernel/numa_balancing", "2");
  write("/sys/kernel/mm/numa/demotion_enabled", "true");
  EXPECT_TRUE(feature("more than one NUMA node").on);
  EXPECT_NE(feature("NUMA balancing").reason.find("promotes"), std::string::npos);
  EXPECT_TRUE(feature("demotion by reclaim").on);
}

TEST_F(PassiveFeatures, GarbageSettingsAreOffWithTheFile) {
  write("/proc/sys/kernel/numa_balancing", "yes please");
  EXPECT_FALSE(feature("NUMA balancing").on);
  EXPECT_NE(feature("NUMA balancing").reason.find("numa_balancing"), std::string::npos);
}

TEST_F(PassiveFeatures, RunningKdamondIsSomebodyElses) {
  const std::string kdamonds = "/sys/kernel/mm/damon/admin/kdamonds";
  write(kdamonds + "/nr_kdamonds", "2");
  write(kdamonds + "/0/state", "off");
  write(kdamonds + "/1/state", "off");
  EXPECT_TRUE(feature("DAMON").on);
  write(kdamonds + "/1/state", "on");
  EXPECT_EQ(feature("DAMON").reason, "unavailable: in use by kdamond 1");
}

TEST_F(PassiveFeatures, Cgroup2BesideVersion1IsFound) {
  write("/sys/fs/cgroup/unified/cgroup.controllers", "cpu memory");
  EXPECT_TRUE(feature("cgroup v2").on);
  EXPECT_TRUE(feature("cgroup v2 memory").on);
  EXPECT_FALSE(feature("cgroup v2 io").on);
}

TEST_F(PassiveFeatures, HoldersComeFromFdinfo) {
  write("/proc/41/fdinfo/3", "pos:\t0\nprog_type:\t26\nprog_id:\t536");
  write("/proc/41/fdinfo/4", "pos:\t0\nlink_id:\t9\nprog_id:\t536");
  write("/proc/42/fdinfo/0", "pos:\t0\nmap_id:\t7");
  write("/proc/self/fdinfo/0", "pos:\t0\nprog_id:\t1");
  write("/proc/43/fdinfo/0", "pos:\t0\nprog_id:\tx");
  const auto programs = find_holders(Sysroot(root_), "prog_id");
  EXPECT_EQ(programs, (std::map<uint32_t, std::vector<int>>{{536, {41}}}));
  EXPECT_EQ(find_holders(Sysroot(root_), "map_id").at(7), std::vector{42});
}

TEST(PassiveMapDump, RunsOfZerosAreShortened) {
  EXPECT_EQ(shorten_zeros("[0,0,0,0,0,7,0,]"), "[0 x5,7,0,]");
  EXPECT_EQ(shorten_zeros("[10,0,0,0,0,]"), "[10,0 x4,]");
  EXPECT_EQ(shorten_zeros("[0,0,0,1,]"), "[0,0,0,1,]");
  EXPECT_EQ(shorten_zeros(""), "");
}

TEST(PassiveMapDump, BytesWithoutTypesAreHex) {
  EXPECT_EQ(hex_text({0xde, 0xad, 0x00}), "de ad 00");
  EXPECT_EQ(hex_text({}), "");
}

}  // namespace
}  // namespace tierpilot
