// A real daemon whose GPU tasks share: the driver's library and the control program of MPS are such
// as do what they are told, and a task computes on the GPU as much as it computes on its CPU.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/system/gpu_scene.h"

namespace tierpilot::test {

// Says that it is a client, with so much memory, and computes until the gate opens or a file of its
// name tells it to fail.
inline constexpr const char* kClient =
    "echo $CUDA_VISIBLE_DEVICES $$ $1 >> $FAKE_NVML/clients; env | grep -E "
    "'CUDA|TIERPILOT_(GPU|SWAP)'; "
    "while [ ! -e $FAKE_NVML/gate ]; do [ -e $FAKE_NVML/fail-$2 ] && exit 3; done; exit 0";

class GpuShare : public GpuScene {
 protected:
  void start(const std::string& mps, const std::string& kinds = {},
             const std::string& control = fmt::format("{}/tests/fake_mps/nvidia-cuda-mps-control",
                                                      std::getenv("TIERPILOT_TEST_SOURCE"))) {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    begin_driver("GPU-a\nGPU-b\n");
    tell("kinds", kinds);
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 1,
                       .units = 2,
                       .coordinator_more = "[sharing]\npolicy = \"best-fit\"\nperiod_s = 1\n",
                       .node_more = fmt::format("[sharing]\ngpus = [\"GPU-a\"]\nmps = \"{}\"\n"
                                                "mps_control = \"{}\"\n"
                                                "[swap]\ntiers = [\"memory=64MiB\"]\n",
                                                mps, control)});
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
  std::filesystem::path pipes() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cluster_->folder()))
      if (entry.path().filename() == "pipe") return entry.path();
    return {};
  }
};

}  // namespace tierpilot::test
