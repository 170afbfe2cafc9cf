// A real daemon whose GPU tasks share: the driver's library and the control program of MPS are such
// as do what they are told, and a task computes on the GPU as much as it computes on its CPU.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {

// Says that it is a client, with so much memory, and computes until the gate opens or a file of its
// name tells it to fail.
inline constexpr const char* kClient =
    "echo $CUDA_VISIBLE_DEVICES $$ $1 >> $FAKE_NVML/clients; env | grep -E "
    "'CUDA|TIERPILOT_(GPU|SWAP)'; "
    "while [ ! -e $FAKE_NVML/gate ]; do [ -e $FAKE_NVML/fail-$2 ] && exit 3; done; exit 0";

class GpuShare : public testing::Test {
 protected:
  void start(const std::string& mps, const std::string& kinds = {},
             const std::string& control = fmt::format("{}/tests/fake_mps/nvidia-cuda-mps-control",
                                                      std::getenv("TIERPILOT_TEST_SOURCE"))) {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    driver_ = std::make_unique<TempFolder>(std::filesystem::temp_directory_path());
    tell("gpus", "GPU-a\nGPU-b\n");
    tell("kinds", kinds);
    ::setenv("FAKE_NVML", driver_->path().c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", program("TIERPILOT_TEST_FAKE_NVML").c_str(), 1);
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 1,
                       .units = 2,
                       .coordinator_more = "[sharing]\npolicy = \"best-fit\"\nperiod_s = 1\n",
                       .node_more = fmt::format("[sharing]\ngpus = [\"GPU-a\"]\nmps = \"{}\"\n"
                                                "mps_control = \"{}\"\n"
                                                "[swap]\ntiers = [\"memory=64MiB\"]\n",
                                                mps, control)});
  }
  void tell(const std::string& file, const std::string& text) {
    std::ofstream(driver_->path() / file, std::ios::app) << text;
  }
  Json json(const Argv& line) {
    Argv all{"-j"};
    all.insert(all.end(), line.begin(), line.end());
    const auto answer = tierctl_at(cluster_->address(), all);
    EXPECT_EQ(answer.code, 0) << answer.err;
    return Json::parse(answer.out, nullptr, false);
  }
  uint64_t submit(const std::string& share, const std::string& name, uint64_t bytes = 1 << 20,
                  const std::string& swap_room = "0", const char* program = kClient) {
    const auto made =
        json({"task", "submit", "--share", share, "--engine", "gpu", "--name", name, "--swap-room",
              swap_room, "--env", "FAKE_NVML=" + driver_->path().string(), "--", "sh", "-c",
              program, "sh", std::to_string(bytes), name});
    if (made.is_object()) return made["tasks"][0]["id"].get<uint64_t>();
    throw std::runtime_error("the task was not taken");
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  bool runs(uint64_t id) { return shown(id)["state"] == "running"; }
  bool is(uint64_t id, const std::string& state) {
    return eventually([&] { return shown(id)["state"] == state; });
  }
  std::string said(uint64_t id) {
    std::string out;
    eventually([&] {
      out = tierctl_at(cluster_->address(), {"task", "logs", std::to_string(id)}).out;
      return out.find("CUDA_VISIBLE_DEVICES") != out.npos;
    });
    return out;
  }
  // Of the client with so much memory.
  pid_t client(uint64_t bytes) {
    pid_t found = 0;
    eventually([&] {
      std::ifstream clients(driver_->path() / "clients");
      std::string gpu;
      pid_t process = 0;
      for (uint64_t has = 0; clients >> gpu >> process >> has;)
        if (has == bytes) found = process;
      return found != 0;
    });
    return found;
  }
  Json unit(const std::string& gpu) {
    const auto listed = json({"unit", "list"});
    for (const auto& unit : listed["units"])
      if (unit["id"] == fmt::format("{}/gpu/{}", Cluster::node_name(0), gpu)) return unit;
    ADD_FAILURE() << listed.dump(2);
    return {};
  }
  std::filesystem::path pipes() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cluster_->folder()))
      if (entry.path().filename() == "pipe") return entry.path();
    return {};
  }

  std::unique_ptr<TempFolder> driver_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace tierpilot::test
