// What the node's GPUs do, read from a library that stands in for the driver's.
#include "daemon/agent/gpus/gpu_reader.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {

class GpuReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    tell("gpus", "GPU-a\nGPU-b\n");
    ::setenv("FAKE_NVML", driver_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("FAKE_NVML"); }
  void tell(const std::string& file, const std::string& text) {
    std::ofstream(driver_.path() + "/" + file) << text;
  }
  // The first that `enough` holds for.
  template <class Enough>
  Result<std::vector<GpuReading>> read_until(const char* library, const Enough& enough) {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Result<std::vector<GpuReading>>> last;
    GpuReader reader({.library = library, .period_ms = 1}, [&](auto readings) {
      const std::lock_guard lock(mutex);
      last = std::move(readings);
      came.notify_all();
    });
    std::unique_lock lock(mutex);
    came.wait(lock, [&] { return last && enough(*last); });
    return *last;
  }

  ScratchDirectory driver_;
};

TEST_F(GpuReaderTest, TellsWhatTheDriverDoesAndNothingElse) {
  tell("temperatures", "GPU-a 61\n");
  const auto readings = read_until(FAKE_NVML_LIBRARY, [](const auto& all) { return bool(all); });
  ASSERT_EQ(readings->size(), 2U);
  EXPECT_EQ(readings->at(0).gpu, "GPU-a");
  EXPECT_EQ(readings->at(0).temperature_c, 61);
  EXPECT_EQ(readings->at(0).memory_used_bytes, uint64_t{1} << 30);
  EXPECT_EQ(readings->at(1).temperature_c, std::nullopt);
}

TEST_F(GpuReaderTest, ADeviceThatIsLostIsLeftOutUntilItIsBack) {
  tell("lost", "GPU-a\n");
  bool back = false;
  const auto readings = read_until(FAKE_NVML_LIBRARY, [&](const auto& all) {
    if (all && all->size() == 1 && !back) {
      EXPECT_EQ(all->at(0).gpu, "GPU-b");
      back = std::filesystem::remove(driver_.path() + "/lost");
    }
    return back && all && all->size() == 2;
  });
  EXPECT_EQ(readings->at(0).gpu, "GPU-a");
}

TEST_F(GpuReaderTest, WithoutADriverSaysWhy) {
  const auto readings =
      read_until("/nonexistent/libnvidia-ml.so.1", [](const auto&) { return true; });
  ASSERT_FALSE(readings);
  EXPECT_EQ(readings.error().code, ErrorCode::kUnavailable);
}

TEST_F(GpuReaderTest, EndsWithoutWaitingForItsTime) {
  GpuReader reader({.library = FAKE_NVML_LIBRARY, .period_ms = int64_t{1} << 40}, [](auto) {});
}

}  // namespace
}  // namespace tierpilot::agent
