#include "policies/quality/guarded_allocator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace tierpilot::quality {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::Not;

using Curve = std::function<double(double iteration)>;

// Believes in one curve, whatever is observed.
class Belief : public Predictor {
 public:
  explicit Belief(Curve curve) : curve_(std::move(curve)) {}
  void observe(LossPoint) override {}
  std::optional<LossForecast> at(double iteration) const override {
    const double loss = curve_(iteration);
    return LossForecast{loss, loss, loss};
  }

 private:
  Curve curve_;
};

double halving(double iteration, double half_life) {
  return std::exp2(-iteration / half_life);
}

// Eight jobs on sixteen cores, an iteration takes a second on one of them; a decision each 10 s.
class Guard : public ::testing::Test {
 protected:
  static constexpr double kTotal = 16, kPeriod_s = 10;

  void add(Curve true_loss, Curve believed) {
    losses_.push_back(std::move(true_loss));
    beliefs_.push_back(std::make_unique<Belief>(std::move(believed)));
    iterations_.push_back(20);
  }
  // What everybody is given for the next period.
  std::vector<double> period() {
    std::vector<JobState> jobs;
    for (size_t i = 0; i < losses_.size(); ++i)
      jobs.push_back({.id = i + 1,
                      .max_cores = 8,
                      .cores = given_.empty() ? 0 : given_[i],
                      .iterations = iterations_[i],
                      .one_core_s = 1,
                      .largest_change = 1,
                      .newest_loss = losses_[i](iterations_[i]),
                      .reports = 100,
                      .predictor = beliefs_[i].get()});
    given_ = allocator_->allocate(
        jobs, {.total = kTotal, .unit = 0.1, .period_s = kPeriod_s, .now_s = now_s_});
    for (size_t i = 0; i < given_.size(); ++i) iterations_[i] += given_[i] * kPeriod_s;
    now_s_ += kPeriod_s;
    return given_;
  }
  int periods_until_equal(int most) {
    for (int i = 0; i < most; ++i) {
      period();
      if (!allocator_->hindrance().empty()) return i;
    }
    return most;
  }

  std::unique_ptr<Allocator> allocator_ = *make_allocator("guarded:quality");
  double now_s_ = 1'000'000;
  std::vector<Curve> losses_;
  std::vector<std::unique_ptr<Belief>> beliefs_;
  std::vector<double> iterations_, given_;
};

TEST_F(Guard, GivesEqualSharesWhereWhatIsPredictedDoesNotCome) {
  for (int i = 0; i < 4; ++i) {
    add([](double) { return 1.0; }, [](double at) { return 1e6 - at; });
    add([](double at) { return halving(at, 2000); }, [](double at) { return 1 - 1e-9 * at; });
  }
  EXPECT_THAT(period(), Not(Each(DoubleNear(2, 1e-6))));
  EXPECT_LT(periods_until_equal(40), 40);
  EXPECT_THAT(period(), Each(DoubleNear(2, 1e-6)));
}

TEST_F(Guard, TriesAgainAfterAWhileAndThenLessOften) {
  for (int i = 0; i < 4; ++i) {
    add([](double) { return 1.0; }, [](double at) { return 1e6 - at; });
    add([](double at) { return halving(at, 1e6); }, [](double at) { return 1 - 1e-9 * at; });
  }
  std::vector<int> lengths;
  for (int tries = 0; tries < 3; ++tries) {
    ASSERT_LT(periods_until_equal(100), 100);
    lengths.push_back(0);
    while (!allocator_->hindrance().empty()) {
      ASSERT_LT(++lengths.back(), 1000);
      period();
    }
  }
  EXPECT_GT(lengths[1], lengths[0]);
  EXPECT_GT(lengths[2], lengths[1]);
}

TEST_F(Guard, LeavesAloneWhatPredictsWell) {
  for (int i = 0; i < 8; ++i) {
    const double half_life = 50 * std::exp2(i);
    const auto curve = [half_life](double at) { return halving(at, half_life); };
    add(curve, curve);
  }
  EXPECT_EQ(periods_until_equal(300), 300);
}

// Neither noise that is as large as what is lost in a block makes it fall back.
TEST_F(Guard, IsNotFooledByNoise) {
  for (int i = 0; i < 8; ++i) {
    const double half_life = 200 * std::exp2(i);
    const auto curve = [half_life](double at) { return halving(at, half_life); };
    add([curve, i](double at) { return curve(at) + 0.02 * std::sin(1e4 * at + i); }, curve);
  }
  EXPECT_EQ(periods_until_equal(300), 300);
}

TEST_F(Guard, WithNobodyItKnowsWaitsAndDoesNotFail) {
  EXPECT_TRUE(period().empty());
  EXPECT_TRUE(period().empty());
  EXPECT_EQ(allocator_->hindrance(), "");
}

TEST(GuardedAllocator, NamesWhatItDoesNotKnow) {
  const auto none = make_allocator("guarded:nothing");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, ::testing::HasSubstr("'nothing'"));
}

}  // namespace
}  // namespace tierpilot::quality
