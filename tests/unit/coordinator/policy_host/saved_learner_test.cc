#include "coordinator/policy_host/saved_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "policies/learning/saved_bytes.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class RememberingLearner final : public Learner {
 public:
  void decided(uint64_t, const View&, size_t) override {}
  void told(uint64_t, const Outcome&) override {}
  bool ready() const override { return false; }
  void train_batch() override {}
  void copy_weights() override {}
  void copy_weights_if_due() override {}
  LearnerCounters counters() const override { return {}; }
  std::string save() const override { return "learned"; }
  Status restore(std::string_view saved) override {
    if (saved != save()) return fail(ErrorCode::kInvalid, "not mine");
    return {};
  }
  std::string save_weights() const override { return save(); }
  Status restore_weights(std::string_view saved) override { return restore(saved); }
};

class SavedLearner : public ::testing::Test {
 protected:
  SavedLearner() : folder_(fs::temp_directory_path() / ("tierpilot_saved_" + pid())) {
    fs::remove_all(folder_);
  }
  ~SavedLearner() override { fs::remove_all(folder_); }

  static std::string pid() { return std::to_string(::getpid()); }
  Result<TakenOver> take_over(const std::string& beginning) {
    RememberingLearner learner;
    return take_over_learner(folder_, "dqn", beginning, learner);
  }
  void save(const std::string& bytes) {
    ASSERT_TRUE(save_bytes(checkpoint_file(folder_, "dqn"), bytes));
  }

  fs::path folder_;
};

TEST_F(SavedLearner, KnowsWhatItOnceBeganFrom) {
  const auto first = take_over("old weights");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->found);
  EXPECT_EQ(first->origin, "old weights");
  save("learned");
  const auto later = take_over("new weights");
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_TRUE(later->found);
  EXPECT_EQ(later->origin, "old weights");
}

TEST_F(SavedLearner, BeginsAnewFromOtherWeights) {
  ASSERT_TRUE(take_over("old weights"));
  save("spoilt");
  const auto anew = take_over("new weights");
  ASSERT_TRUE(anew) << anew.error().message;
  EXPECT_FALSE(anew->found);
  EXPECT_THAT(anew->note, HasSubstr("not mine"));
  EXPECT_EQ(anew->origin, "new weights");
  save("learned");
  EXPECT_EQ(take_over("newer weights")->origin, "new weights");
}

TEST_F(SavedLearner, SaysWhenNobodyWroteDownWhatItBeganFrom) {
  fs::create_directories(folder_);
  save("learned");
  const auto taken = take_over("new weights");
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_THAT(taken->origin, HasSubstr("not written down"));
}

TEST_F(SavedLearner, WithoutAFolderNothingIsThere) {
  RememberingLearner learner;
  const auto taken = take_over_learner({}, "dqn", "weights", learner);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->found);
  EXPECT_EQ(taken->origin, "weights");
}

}  // namespace
}  // namespace tierpilot
