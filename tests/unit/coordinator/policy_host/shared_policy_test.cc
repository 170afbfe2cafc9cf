#include "coordinator/policy_host/shared_policy.h"

#include <gtest/gtest.h>
#include <time.h>

#include <functional>
#include <future>
#include <stdexcept>
#include <thread>

namespace tierpilot {
namespace {

// Of this thread, so that a busy machine makes no decision slow.
void burn_cpu_ns(int64_t ns) {
  const auto used_ns = [] {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
  };
  for (const int64_t until = used_ns() + ns; used_ns() < until;) {
  }
}

struct Script {
  int64_t burns_ns = 0;
  bool throws = false;
  std::function<void()> meanwhile = [] {};
};

class Scripted final : public Policy {
 public:
  explicit Scripted(Script& script) : script_(script) {}
  Decision decide(const View&) override {
    script_.meanwhile();
    burn_cpu_ns(script_.burns_ns);
    if (script_.throws) throw std::runtime_error("no idea");
    Decision decision;
    decision.node = 1;
    return decision;
  }

 private:
  Script& script_;
};

class SharedPolicyTest : public ::testing::Test {
 protected:
  SharedPolicyTest() {
    for (uint32_t slot = 0; slot < 2; ++slot)
      view_.nodes.push_back({.slot = slot, .candidate = true, .units = 2});
  }
  SharedPolicy make(bool trusted) {
    return {"scripted", std::make_unique<Scripted>(script_), trusted};
  }
  // A machine may take its time for a quick one.
  bool becomes_quick(SharedPolicy& policy) {
    for (int i = 0; i < 10'000; ++i) {
      if (policy.decide_if_quick(view_)) return true;
      policy.decide(view_);
    }
    return false;
  }

  Script script_;
  View view_;
};

TEST_F(SharedPolicyTest, ATrustedOneDecidesAtOnce) {
  auto policy = make(true);
  ASSERT_TRUE(policy.decide_if_quick(view_));
  EXPECT_EQ(policy.decide_if_quick(view_)->node, 1u);
}

TEST_F(SharedPolicyTest, AnotherHasToShowThatItIsQuick) {
  auto policy = make(false);
  EXPECT_FALSE(policy.decide_if_quick(view_));
  policy.decide(view_);
  EXPECT_FALSE(policy.decide_if_quick(view_));
  EXPECT_TRUE(becomes_quick(policy));
}

TEST_F(SharedPolicyTest, ASlowOneNeverDecidesAtOnce) {
  script_.burns_ns = static_cast<int64_t>(2 * SharedPolicy::kQuickNs);
  auto policy = make(false);
  for (int i = 0; i < 200; ++i) {
    ASSERT_FALSE(policy.decide_if_quick(view_));
    policy.decide(view_);
  }
}

TEST_F(SharedPolicyTest, OneThatBecomesSlowDecidesElsewhereUntilItIsQuickAgain) {
  auto policy = make(false);
  ASSERT_TRUE(becomes_quick(policy));
  script_.burns_ns = static_cast<int64_t>(2 * SharedPolicy::kQuickNs);
  for (int i = 0; i < 100; ++i) policy.decide(view_);
  EXPECT_FALSE(policy.decide_if_quick(view_));
  script_.burns_ns = 0;
  EXPECT_TRUE(becomes_quick(policy));
}

TEST_F(SharedPolicyTest, NobodyWaitsForTheOtherThreadsDecision) {
  auto policy = make(true);
  std::promise<void> began;
  std::promise<void> release;
  script_.meanwhile = [&] {
    began.set_value();
    release.get_future().wait();
  };
  std::thread other([&] { policy.decide(view_); });
  began.get_future().wait();
  EXPECT_FALSE(policy.decide_if_quick(view_));
  release.set_value();
  other.join();
  script_.meanwhile = [] {};
  EXPECT_TRUE(policy.decide_if_quick(view_));
}

TEST_F(SharedPolicyTest, TheFallbackDecidesWhenItThrows) {
  script_.throws = true;
  auto policy = make(true);
  const auto decision = policy.decide_if_quick(view_);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->fault, DecisionFault::kFailed);
  EXPECT_LT(decision->node, 2u);
}

}  // namespace
}  // namespace tierpilot
