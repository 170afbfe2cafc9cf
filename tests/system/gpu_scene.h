// A real daemon whose GPUs are a library's in place of the driver's, which does as it is told.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {

class GpuScene : public testing::Test {
 protected:
  // To be called before the cluster starts. `gpus`: UUIDs, a line each.
  void begin_driver(const std::string& gpus) {
    driver_ = std::make_unique<TempFolder>(std::filesystem::temp_directory_path());
    tell("gpus", gpus);
    ::setenv("FAKE_NVML", driver_->path().c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", program("TIERPILOT_TEST_FAKE_NVML").c_str(), 1);
  }
  void tell(const std::string& file, const std::string& text) {
    std::ofstream(driver_->path() / file, std::ios::app) << text;
  }
  Json json(const Argv& line) { return tierctl_json(cluster_->address(), line); }
  Json unit(const std::string& gpu) {
    const auto listed = json({"unit", "list"});
    for (const auto& unit : listed["units"])
      if (unit["id"] == fmt::format("{}/gpu/{}", Cluster::node_name(0), gpu)) return unit;
    ADD_FAILURE() << listed.dump(2);
    return {};
  }

  std::unique_ptr<TempFolder> driver_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace tierpilot::test
