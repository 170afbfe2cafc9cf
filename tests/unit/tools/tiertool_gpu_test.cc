// "tiertool gpu", with a library that has NVML's binary interface in place of a driver.
#include <gmock/gmock.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/json_text.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

class TiertoolGpu : public ::testing::Test {
 protected:
  TiertoolGpu() {
    context_.output = {false, out_, err_};
    use("good");
    ::setenv("FAKE_NVML_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("FAKE_NVML_MPS_PID", "4194305", 1);  // above what a kernel gives
  }
  ~TiertoolGpu() override {
    ::unsetenv("FAKE_NVML_PID");
    ::unsetenv("FAKE_NVML_MPS_PID");
  }
  void use(const std::string& driver) {
    context_.discover.nvml_library = FIXED_NVML_DIR "/libfixed_nvml_" + driver + ".so";
  }
  int run(std::vector<const char*> args) {
    CLI::App app{"", "tiertool"};
    app.require_subcommand(1);
    add_gpu(app, context_);
    args.insert(args.begin(), "tiertool");
    const auto code =
        parse_arguments(app, static_cast<int>(args.size()), args.data(), context_.output);
    return code ? *code : context_.command();
  }

  std::ostringstream out_, err_;
  Context context_;
};

TEST_F(TiertoolGpu, ShowsWhoUsesWhat) {
  EXPECT_EQ(run({"gpu", "show", "-j"}), kExitDegraded) << err_.str();
  const auto value = parse_json<ordered_json>(out_.str());
  ASSERT_EQ(value["gpus"].size(), 2U);
  const auto& first = value["gpus"][0];
  EXPECT_EQ(first["uuid"], "GPU-0");
  EXPECT_EQ(first["utilisation"], 0.37);
  EXPECT_EQ(first["memory_used_bytes"], 1ULL << 30);
  EXPECT_EQ(first["temperature_c"], 61);
  EXPECT_EQ(first["power_w"], 250.5);
  EXPECT_EQ(first["compute_capability"], 8.9);
  EXPECT_EQ(first["cores"], 16384);
  EXPECT_EQ(first["bus_width_bits"], 384);
  ASSERT_EQ(value["processes"].size(), 2U);
  const auto& own = value["processes"][0];
  EXPECT_EQ(own["gpu"], 0);
  EXPECT_EQ(own["pid"], ::getpid());
  EXPECT_EQ(own["command"], "unit_tools");
  EXPECT_EQ(own["memory_bytes"], 3ULL << 30);
  EXPECT_EQ(own["sm"], 0.3) << "the mean of what the driver has sampled";
  EXPECT_EQ(own["mps"], false);
  EXPECT_TRUE(own["task"].is_null());
}

TEST_F(TiertoolGpu, AProcessIsOneLine) {
  ::setenv("FAKE_NVML_MPS_PID", std::to_string(::getpid()).c_str(), 1);
  EXPECT_EQ(run({"gpu", "show", "-j"}), kExitDegraded);
  const auto value = parse_json<ordered_json>(out_.str());
  ASSERT_EQ(value["processes"].size(), 1U) << value;
  EXPECT_EQ(value["processes"][0]["pid"], ::getpid());
  EXPECT_EQ(value["processes"][0]["memory_bytes"], 3ULL << 30) << "which one list only tells";
  EXPECT_EQ(value["processes"][0]["sm"], 0.3);
  EXPECT_EQ(value["processes"][0]["mps"], true);
}

TEST_F(TiertoolGpu, WhatIsNotToldIsNull) {
  EXPECT_EQ(run({"gpu", "show", "-j"}), kExitDegraded);
  const auto value = parse_json<ordered_json>(out_.str());
  const auto& second = value["gpus"][1];
  for (const auto* key :
       {"utilisation", "memory_used_bytes", "temperature_c", "power_w", "compute_capability",
        "cores", "sm_clock_mhz", "memory_clock_mhz", "bus_width_bits"})
    EXPECT_TRUE(second[key].is_null()) << key;
  const auto& gone = value["processes"][1];
  EXPECT_EQ(gone["mps"], true);
  for (const auto* key : {"command", "user", "task", "memory_bytes", "sm"})
    EXPECT_TRUE(gone[key].is_null()) << key;
}

TEST_F(TiertoolGpu, GpusThatDoNotAnswerAreWarnings) {
  EXPECT_EQ(run({"gpu", "show"}), kExitDegraded);
  EXPECT_THAT(err_.str(), HasSubstr("GPU 2: GPU is lost"));
  EXPECT_THAT(err_.str(), HasSubstr("GPU 1: its processes"));
  EXPECT_THAT(out_.str(), HasSubstr("Fake GPU 0"));
  EXPECT_THAT(out_.str(), HasSubstr("unit_tools"));
}

TEST_F(TiertoolGpu, TasksAreKnownByTheirEnvironment) {
  const auto root =
      std::filesystem::temp_directory_path() / ("tierpilot-gpu-" + std::to_string(::getpid()));
  const auto folder = root / "proc" / std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "comm") << "python3\n";
  using namespace std::string_literals;
  std::ofstream(folder / "environ") << "A=1\0TIERPILOT_TASK_ID=12\0TIERPILOT_ATTEMPT=3\0"s;
  context_.sysroot = Sysroot(root);
  EXPECT_EQ(run({"gpu", "show", "-j"}), kExitDegraded);
  const auto value = parse_json<ordered_json>(out_.str());
  EXPECT_EQ(value["processes"][0]["task"], "12-3");
  EXPECT_EQ(value["processes"][0]["command"], "python3");
  std::filesystem::remove_all(root);
}

TEST_F(TiertoolGpu, TopLooksAgain) {
  EXPECT_EQ(run({"gpu", "top", "--count", "2", "--interval", "0.1", "-j"}), kExitDegraded)
      << "as gpu show: one of the three does not answer";
  std::istringstream lines(out_.str());
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(parse_json<ordered_json>(line)["gpus"].size(), 2U);
    ++count;
  }
  EXPECT_EQ(count, 2);
}

TEST_F(TiertoolGpu, WithoutADriverTheReasonIsNamed) {
  use("no_driver");
  EXPECT_EQ(run({"gpu", "show"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("Driver Not Loaded"));
  err_.str("");
  use("that_is_not_there");
  EXPECT_EQ(run({"gpu", "show"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("NVML"));
}

TEST_F(TiertoolGpu, AnotherMachinesFilesHaveNoGpus) {
  context_.foreign_root = true;
  EXPECT_EQ(run({"gpu", "show"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("--sysroot"));
}

}  // namespace
}  // namespace tierpilot::tiertool
