// What workers of one program take of what the environment gives it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tests/unit/swap_core/front_end.h"

namespace tierpilot::swap {
namespace {

class GivenTest : public ::testing::Test {
 protected:
  GivenTest() {
    set("TIERPILOT_SWAP_BUDGET", "3GiB");
    set("TIERPILOT_SWAP_TIERS", "memory=96MiB");
  }
  ~GivenTest() override {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    set_[name] = value;
    setenv(name.c_str(), value.c_str(), 1);
  }
  void set_world(const std::string& local_world_size) {
    set("TORCHELASTIC_RUN_ID", "none");
    set("LOCAL_WORLD_SIZE", local_world_size);
  }
  static void expect(FrontEnd&& front, int64_t budget_bytes, int64_t capacity_bytes) {
    EXPECT_EQ(front.said("statistics")["budget_bytes"], budget_bytes);
    EXPECT_EQ(front.said("tiers")[0]["capacity_bytes"], capacity_bytes);
  }

 private:
  std::map<std::string, std::string> set_;
};

TEST_F(GivenTest, OneProcessHasAllOfIt) {
  expect(FrontEnd("swap", 0, nullptr), 3LL << 30, 96 << 20);
}

TEST_F(GivenTest, WorkersOfTorchrunDivideIt) {
  set_world("3");
  expect(FrontEnd("swap", 0, nullptr), 1LL << 30, 32 << 20);
}

TEST_F(GivenTest, WhatTheProgramSaysIsEachWorkersOwn) {
  set_world("3");
  expect(FrontEnd("swap", 2LL << 30, "memory=64MiB"), 2LL << 30, 64 << 20);
}

TEST_F(GivenTest, ARankOfAGangHasWhatItWasGiven) {
  set("LOCAL_WORLD_SIZE", "3");  // its node sets this, and gives each rank its own
  expect(FrontEnd("swap", 0, nullptr), 3LL << 30, 96 << 20);
}

TEST_F(GivenTest, AWorldOfNoSizeIsOneProcess) {
  for (const auto* const size : {"", "0", "-3", "3x", "99999999999999999999"}) {
    set_world(size);
    expect(FrontEnd("swap", 0, nullptr), 3LL << 30, 96 << 20);
  }
}

TEST_F(GivenTest, TiersThatAreFoundAreDividedToo) {
  set("TIERPILOT_SWAP_TIERS", "");
  set("TIERPILOT_SWAP_DIR", "/var/tmp");
  FrontEnd alone("swap", 1LL << 30, nullptr);
  set_world("4");
  FrontEnd worker("swap", 1LL << 30, nullptr);
  const auto of = [](FrontEnd& front) {
    const auto tiers = front.said("tiers");
    for (const auto& tier : tiers)
      if (tier["kind"] == "directory") return tier["capacity_bytes"].get<double>();
    return 0.0;
  };
  EXPECT_GT(of(worker), 0);
  EXPECT_NEAR(of(worker) / of(alone), 0.25, 0.05);  // others write to that disk
}

TEST_F(GivenTest, APartThatIsTooSmallToMeasureIsAnError) {
  set("TIERPILOT_SWAP_TIERS", "dir:/var/tmp=1MiB");
  set_world("300");
  const tierpilot_swap_settings settings{.size = sizeof settings};
  char error[512] = "";
  EXPECT_EQ(tierpilot_swap_open(&settings, error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("there is room for 3495 bytes"), std::string::npos) << error;
}

TEST_F(GivenTest, NoBudgetIsAnErrorThatNamesTheVariable) {
  for (const auto* const said : {"", "fast", "-1", "0", "0GiB", "99999999TiB"}) {
    set("TIERPILOT_SWAP_BUDGET", said);
    const tierpilot_swap_settings settings{.size = sizeof settings};
    char error[256] = "";
    EXPECT_EQ(tierpilot_swap_open(&settings, error, sizeof error), nullptr);
    EXPECT_NE(std::string(error).find("TIERPILOT_SWAP_BUDGET"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace tierpilot::swap
