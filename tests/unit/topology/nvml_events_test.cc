// Xid errors and lost devices, through a library that stands in for the driver's.
#include "daemon/topology/nvml_events.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/topology/xid.h"

namespace tierpilot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NvmlEventsTest : public ::testing::Test {
 protected:
  NvmlEventsTest() {
    folder_ =
        std::filesystem::temp_directory_path() / ("tierpilot-nvml-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    ::setenv("FAKE_NVML", folder_.c_str(), 1);
    append("gpus", "GPU-a\nGPU-b\n");
  }
  ~NvmlEventsTest() override { std::filesystem::remove_all(folder_); }

  void append(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file, std::ios::app) << text;
  }
  Result<NvmlEvents> open() {
    std::vector<std::string> warnings;
    return NvmlEvents::open(FAKE_NVML_LIBRARY, warnings);
  }

  std::filesystem::path folder_;
};

TEST_F(NvmlEventsTest, TellsWhichDeviceHadWhichXid) {
  append("xids", "GPU-a 48\n");  // before anybody listens
  auto events = open();
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_THAT(events->wait(0), IsEmpty());
  append("xids", "GPU-b 79\nGPU-a 13\n");
  const auto told = events->wait(0);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].gpu, "GPU-b");
  EXPECT_EQ(told[0].number, 79u);
  EXPECT_EQ(told[1].gpu, "GPU-a");
  EXPECT_EQ(told[1].number, 13u);
  EXPECT_THAT(events->wait(0), IsEmpty()) << "once each";
}

TEST_F(NvmlEventsTest, AStormDoesNotKeepItForEver) {
  auto events = open();
  ASSERT_TRUE(events);
  for (int i = 0; i < 100; ++i) append("xids", "GPU-a 63\n");
  EXPECT_EQ(events->wait(0).size(), 64u);
  EXPECT_EQ(events->wait(0).size(), 36u);
}

TEST_F(NvmlEventsTest, ALostDeviceIsLostUntilItIsBack) {
  auto events = open();
  ASSERT_TRUE(events);
  EXPECT_THAT(events->lost(), IsEmpty());
  append("lost", "GPU-b\n");
  EXPECT_THAT(events->lost(), ElementsAre("GPU-b"));
  auto later = open();
  ASSERT_TRUE(later);
  EXPECT_THAT(later->gpus(), ElementsAre("GPU-a"));
  std::filesystem::remove(folder_ / "lost");
  EXPECT_THAT(events->lost(), IsEmpty());
}

TEST_F(NvmlEventsTest, WithoutDriverOrFunctionTheReasonIsSaid) {
  std::filesystem::remove(folder_ / "gpus");
  auto none = open();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("Driver Not Loaded"));
  std::vector<std::string> warnings;
  const auto old = NvmlEvents::open(FIXED_NVML_DIR "/libfixed_nvml_good.so", warnings);
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().message, HasSubstr("nvmlEventSetCreate"));
}

TEST(Xids, TellTheApplicationsFaultFromTheDevices) {
  for (const unsigned own : {13, 31, 43, 45, 68, 69})
    EXPECT_EQ(find_xid(own).cause, XidCause::kApplication) << own;
  for (const unsigned device : {48, 63, 64, 74, 79, 92, 94, 95, 119, 120})
    EXPECT_EQ(find_xid(device).cause, XidCause::kDevice) << device;
  for (const unsigned unknown : {0u, 1u, 99u, 4'000'000'000u})
    EXPECT_EQ(find_xid(unknown).cause, XidCause::kUnclear) << unknown;
}

}  // namespace
}  // namespace tierpilot
