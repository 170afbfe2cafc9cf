#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/support/scratch_directory.h"
#include "tests/unit/topology/sysroots.h"

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

std::string fake(const std::string& name) {
  return FIXED_NVML_DIR "/libfixed_nvml_" + name + ".so";
}

TEST(Gpus, AreReadThroughNvml) {
  const auto topology = discover_fake("one_node", fake("good"));
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->gpus_unavailable, "");
  ASSERT_EQ(topology->gpus.size(), 2U);
  const auto& gpu = topology->gpus[0];
  EXPECT_EQ(gpu.name, "Fake GPU 0");
  EXPECT_EQ(gpu.uuid, "GPU-0");
  EXPECT_EQ(gpu.pci_address, "0000:a1:00.0");
  EXPECT_EQ(gpu.memory_total_bytes, 80ULL << 30);
  EXPECT_EQ(gpu.memory_free_bytes, 79ULL << 30);
  EXPECT_EQ(gpu.utilisation_percent, 37);
  EXPECT_EQ(gpu.numa_node, std::nullopt) << "the fake machine does not tell";
}

TEST(Gpus, AreToldByTheirKind) {
  const auto topology = discover_fake("one_node", fake("good"));
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->gpus.size(), 2U);
  const auto& gpu = topology->gpus[0];
  EXPECT_EQ(gpu.compute_capability, 8.9);
  EXPECT_EQ(gpu.cores, 16384U);
  EXPECT_EQ(gpu.sm_clock_mhz, 2520U);
  EXPECT_EQ(gpu.memory_clock_mhz, 10501U);
  EXPECT_EQ(gpu.bus_width_bits, 384U);
  const auto& other = topology->gpus[1];
  EXPECT_EQ(other.compute_capability, std::nullopt);
  for (const auto& figure : {other.cores, other.sm_clock_mhz, other.memory_clock_mhz})
    EXPECT_EQ(figure, std::nullopt) << "not supported, which is not zero";
  EXPECT_EQ(other.bus_width_bits, std::nullopt);
}

TEST(Gpus, WhatOneDoesNotSupportIsNotZero) {
  const auto topology = discover_fake("one_node", fake("good"));
  ASSERT_EQ(topology->gpus.size(), 2U);
  EXPECT_EQ(topology->gpus[1].memory_total_bytes, std::nullopt);
  EXPECT_EQ(topology->gpus[1].utilisation_percent, std::nullopt);
}

TEST(Gpus, OneThatDoesNotAnswerIsWarnedOf) {
  const auto topology = discover_fake("one_node", fake("good"));
  ASSERT_EQ(topology->warnings.size(), 1U);
  EXPECT_EQ(topology->warnings[0], "GPU 2: GPU is lost (NVML error 15)");
}

TEST(Gpus, AbsentLibraryDriverOrFunctionIsAReason) {
  EXPECT_NE(discover_fake("one_node", "libno-such-nvml.so")->gpus_unavailable.find("libno-such"),
            std::string::npos);
  EXPECT_NE(
      discover_fake("one_node", fake("no_driver"))->gpus_unavailable.find("Driver Not Loaded"),
      std::string::npos);
  EXPECT_NE(discover_fake("one_node", fake("old"))
                ->gpus_unavailable.find("nvmlDeviceGetUtilizationRates"),
            std::string::npos);
}

TEST(Gpus, ADriverThatHangsIsAReason) {
  ScratchDirectory driver;
  const std::string mute = driver.path() + "/mute";
  std::ofstream(driver.path() + "/gpus") << "GPU-a\n";
  std::ofstream(mute) << "";
  ::setenv("FAKE_NVML", driver.path().c_str(), 1);
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  const auto topology = discover_topology(
      Sysroot(SYSROOTS "/one_node"), {.nvml_library = FAKE_NVML_LIBRARY, .nvml_patience = 50ms});
  ASSERT_TRUE(topology);
  EXPECT_THAT(topology->gpus_unavailable, testing::HasSubstr("does not answer"));
  EXPECT_EQ(topology->warnings.size(), 1U);
  EXPECT_FALSE(topology->nodes.empty());
  std::filesystem::remove(mute);
  while (threads() > before) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(discover_topology(Sysroot(SYSROOTS "/one_node"), {.nvml_library = FAKE_NVML_LIBRARY})
                ->gpus.size(),
            1U);
}

}  // namespace
}  // namespace tierpilot
