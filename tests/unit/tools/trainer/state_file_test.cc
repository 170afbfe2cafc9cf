// Saved states: back as they were, and nothing that is damaged is believed.
#include "tools/trainer/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/support/scratch_directory.h"

namespace tierpilot::trainer {
namespace {

using ::testing::HasSubstr;

class StateFile : public testing::Test {
 protected:
  std::string bytes() {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) { std::ofstream(file_, std::ios::binary) << bytes; }

  const TrainingState state_{
      .step = 7, .weights = {1.5f, -0.0f, 1e-40f}, .velocity = {0.25f, INFINITY, 3}};
  const ScratchDirectory scratch_;
  const std::filesystem::path folder_ = scratch_.path(), file_ = folder_ / "state";
};

TEST_F(StateFile, ComesBackAsItWas) {
  ASSERT_TRUE(save_state(file_, "mlp, seed 1", state_));
  const auto loaded = load_state(file_, "mlp, seed 1", 3);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, state_);
  EXPECT_TRUE(std::signbit(loaded->weights[1]));
}

TEST_F(StateFile, OfAnotherTrainingIsRefusedWithBothNames) {
  ASSERT_TRUE(save_state(file_, "mlp, seed 1", state_));
  const auto other = load_state(file_, "conv, seed 2", 3);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("'mlp, seed 1'"));
  EXPECT_THAT(other.error().message, HasSubstr("'conv, seed 2'"));
  EXPECT_FALSE(load_state(file_, "mlp, seed 1", 4)) << "a net of another size";
}

TEST_F(StateFile, WhatIsMissingOrNoFileIsNamed) {
  const auto missing = load_state(folder_ / "none", "mlp", 3);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr((folder_ / "none").string()));
  EXPECT_FALSE(load_state(folder_, "mlp", 3));
  EXPECT_FALSE(save_state(folder_ / "none" / "state", "mlp", state_));
}

TEST_F(StateFile, AnyDamageIsSeen) {
  ASSERT_TRUE(save_state(file_, "mlp", state_));
  const auto whole = bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    write(damaged);
    EXPECT_FALSE(load_state(file_, "mlp", 3)) << "byte " << i;
    write(whole.substr(0, i));
    EXPECT_FALSE(load_state(file_, "mlp", 3)) << "the first " << i << " bytes";
  }
  write(whole + "x");
  EXPECT_FALSE(load_state(file_, "mlp", 3));
  write(whole);
  EXPECT_TRUE(load_state(file_, "mlp", 3));
}

}  // namespace
}  // namespace tierpilot::trainer
