// Tasks with a share of a GPU that is predicted from their model cards: a real daemon with a
// driver's library that stands in, and a predictor that two made kinds of GPUs were measured for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "policies/sharing/predict/jobs/gpu_model.h"
#include "tests/fake_nvml/made_gpus.h"
#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

// Of 10 ms of the GPU, which counts as much as its first thread uses of a CPU.
constexpr const char* kForetoldJob = R"(
import os, sys, time, tierpilot
iterations = int(sys.argv[1])
with open(os.environ["FAKE_NVML"] + "/clients", "a") as file:
    file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {os.getpid()} {1 << 30}\n")
print({name: value for name, value in os.environ.items() if "GPU_MEMORY" in name or "MEM_LIMIT" in name}, flush=True)
job = tierpilot.job()
for i in range(iterations):
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass
    job.report(iteration=i + 1, iterations=iterations)
)";

class GpuForecast : public testing::Test {
 protected:
  // `known`: the predictor has learned of GPUs.
  void start(bool known) {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    folder_ = std::make_unique<TempFolder>(std::filesystem::temp_directory_path());
    write("gpus", "GPU-a\n");
    const auto& gpu = sharing::kBetween;
    write("kinds",
          fmt::format("GPU-a {} 7 0 {} {} {} {} {}\n", gpu.name, gpu.cores, gpu.sm_clock_mhz,
                      gpu.memory_clock_mhz, gpu.bus_width_bits, gpu.memory_bytes));
    std::ifstream shipped(std::filesystem::path(program("TIERPILOT_TEST_SOURCE")) /
                          "policies/weights/job-predictor.json");
    auto predictor = Json::parse(shipped);
    predictor.erase("gpu");
    if (known)
      predictor["gpu"] = sharing::gpu_model_json(
          sharing::fit_gpu_model(sharing::made_trainings({sharing::kOld, sharing::kNew})));
    write("predictor.json", predictor.dump());
    ::setenv("FAKE_NVML", folder_->path().c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", program("TIERPILOT_TEST_FAKE_NVML").c_str(), 1);
    cluster_ = std::make_unique<Cluster>(ClusterOptions{
        .nodes = 1,
        .coordinator_more =
            fmt::format("[sharing]\npolicy = \"share\"\nperiod_s = 1\npredictor = \"{}\"\n",
                        (folder_->path() / "predictor.json").string()),
        .node_more = "[sharing]\ngpus = [\"GPU-a\"]\nmps = \"never\"\n"});
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_->path() / name) << text;
  }
  std::string card(uint64_t iterations) {
    auto made = card_;
    made.job->iterations = iterations;
    auto json = sharing::card_json(made);
    json["schema"] = 1;
    json["kind"] = "model card";
    write("card.json", json.dump());
    return (folder_->path() / "card.json").string();
  }
  uint64_t submit(const std::string& name, int iterations, std::vector<std::string> more = {}) {
    std::vector<std::string> options{"--share",      "auto",
                                     "--engine",     "gpu",
                                     "--name",       name,
                                     "--env",        "FAKE_NVML=" + folder_->path().string(),
                                     "--model-card", card(static_cast<uint64_t>(iterations))};
    options.insert(options.end(), more.begin(), more.end());
    return submit_python(cluster_->address(), options, kForetoldJob, {std::to_string(iterations)});
  }
  Json ended(uint64_t id) {
    const auto task = cluster_->client().wait(id);
    EXPECT_TRUE(task) << task.error().message;
    const auto shown = test::shown(cluster_->client(), id);
    EXPECT_EQ(shown["state"], "succeeded") << shown.dump(2) << cluster_->logs();
    return shown;
  }
  std::string explained(uint64_t id) {
    return tierctl_at(cluster_->address(), {"task", "explain", std::to_string(id)}).out;
  }

  // On the GPU between those that were measured it takes 10 ms, and its data 25.
  const sharing::ModelCard card_ = sharing::made_card(2.5e10, 1e6, 10, 0.025);
  std::unique_ptr<TempFolder> folder_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(GpuForecast, WhatTheDriverTellsOfAGpuIsShown) {
  start(false);
  if (!cluster_) return;
  const auto node =
      parse(tierctl_at(cluster_->address(), {"-j", "node", "show", Cluster::node_name(0)}).out);
  const auto& gpu = node["node"]["info"]["gpus"][0];
  EXPECT_EQ(gpu["name"], "Between") << gpu.dump(2);
  EXPECT_EQ(gpu["compute_capability"], 7);
  EXPECT_EQ(gpu["cores"], 5120);
  EXPECT_EQ(gpu["sm_clock_mhz"], 1530);
  EXPECT_EQ(gpu["memory_clock_mhz"], 877);
  EXPECT_EQ(gpu["bus_width_bits"], 4096);
}

TEST_F(GpuForecast, ATaskGetsTheShareThatItsCardForetellsForTheGpuOfItsNode) {
  start(true);
  if (!cluster_) return;
  const double milli = 1000 * sharing::made_busy_s(card_, sharing::kBetween) / 0.025;
  const auto id = submit("train", 1200);
  const auto task = ended(id);
  const auto& share = task["unit_share"];
  EXPECT_EQ(share["predicted_by"], "its model card") << share.dump(2);
  EXPECT_GE(share["predicted_milli"].get<double>(), 0.75 * milli);
  EXPECT_LE(share["predicted_milli"].get<double>(), 2 * milli);
  EXPECT_GE(share["memory_bytes"].get<double>(), 0.8 * sharing::made_bytes(card_));
  EXPECT_GT(share["predicted_s"].get<double>(), 0.7 * 1200 * 0.025);
  EXPECT_NE(explained(id).find("by its model card it uses"), std::string::npos) << explained(id);
  // What is predicted of memory is counted, not enforced: it had more and was not ended.
  const auto said = tierctl_at(cluster_->address(), {"task", "logs", std::to_string(id)}).out;
  EXPECT_NE(said.find("{}"), said.npos) << said;
  // Its run corrects the next one, whatever that is called.
  const auto next = ended(submit("another", 20))["unit_share"];
  EXPECT_EQ(next["predicted_by"], "its model card, corrected by a run of its model")
      << task.dump(2);
}

TEST_F(GpuForecast, APromiseIsMadeByWhatTheCardForetells) {
  start(true);
  if (!cluster_) return;
  const auto line = [&](const std::string& promise) {
    return tierctl_at(cluster_->address(),
                      {"-j", "task", "submit", "--share", "auto", "--engine", "gpu", "--promise",
                       promise, "--model-card", card(4000), "--", "true"});
  };
  // A hundred seconds of loading.
  EXPECT_NE(line("60s").err.find("a promise of 60 s cannot be made"), std::string::npos)
      << line("60s").err;
  EXPECT_EQ(line("1000s").code, 0) << line("1000s").err;
}

TEST_F(GpuForecast, WhereNoGpuWasMeasuredItsUserTells) {
  start(false);
  if (!cluster_) return;
  const auto id = submit("train", 1200, {"--estimate", "5s"});
  const auto task = ended(id);
  const auto share = task["unit_share"];
  EXPECT_NE(share["predicted_by"].dump().find("its user; its model card tells nothing"),
            std::string::npos)
      << share.dump(2);
  EXPECT_NE(explained(id).find("its model card tells nothing"), std::string::npos) << explained(id);
  const auto again = ended(submit("train", 20))["unit_share"];
  EXPECT_EQ(again["predicted_by"], "a run of its name") << task.dump(2);
  EXPECT_EQ(again["memory_bytes"], 1u << 30) << "of the GPU's memory, not of the node's";
}

}  // namespace
}  // namespace tierpilot::test
