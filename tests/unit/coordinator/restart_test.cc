// What a restart reads back, and what that costs.
#include <gtest/gtest.h>

#include <ctime>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

// Of this thread: other programs on the machine do not count.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

class Restart : public CoreTest {
 protected:
  // A task, and all others wait for it.
  std::vector<TaskSpec> fan(size_t tasks) {
    std::vector<TaskSpec> specs{spec("first")};
    while (specs.size() < tasks)
      specs.push_back(spec("t" + std::to_string(specs.size()), {"first"}));
    return specs;
  }
  double restart_cpu_s() {
    close();
    const double before_s = cpu_s();
    open();
    return cpu_s() - before_s;
  }
};

TEST_F(Restart, CostsPerTaskAreTheSameForLargeSubmits) {
  constexpr size_t kSmall = 300, kTimes = 4;
  ASSERT_TRUE(submit(fan(kSmall)));
  (void)restart_cpu_s();  // what only the first one costs
  const double small_s = restart_cpu_s();
  ASSERT_TRUE(submit(fan(kTimes * kSmall)));
  const double both_s = restart_cpu_s();
  EXPECT_EQ(state_->tasks.all().size(), (1 + kTimes) * kSmall);
  // 5 times as many tasks; by pairs of siblings it would be 17 times.
  EXPECT_LT(both_s, 10 * small_s) << "small " << small_s << " s";
}

TEST_F(Restart, AWaitingTaskWaitsForThoseThatAreLeft) {
  join("n1");
  ASSERT_TRUE(submit({spec("a"), spec("b"), spec("c", {"a", "b"}), spec("d", {"c"})}));
  ASSERT_TRUE(submit({spec("b"), spec("x", {"b"})}));  // names are the submit's own
  ASSERT_TRUE(exit("n1", assign(1, "n1"), success()));
  restart();
  EXPECT_EQ(state_->tasks.find(1), nullptr);
  EXPECT_EQ(state_->tasks.find(3)->state, TaskState::kWaiting);
  join("n1");
  ASSERT_TRUE(exit("n1", assign(2, "n1"), success()));
  EXPECT_EQ(state_->tasks.find(3)->state, TaskState::kQueued);
  EXPECT_EQ(state_->tasks.find(4)->state, TaskState::kWaiting);
  EXPECT_EQ(state_->tasks.find(6)->state, TaskState::kWaiting);
}

TEST_F(Restart, ReadsOfADatasetAreCountedOn) {
  join("n1");
  add_dataset("d", 1 << 20, "n1");
  const auto read_it = [this] {
    auto reader = spec();
    reader.datasets = {{"d", false}};
    const auto id = submit({reader})->first_task;
    ASSERT_TRUE(exit("n1", assign(id, "n1"), success()));
    flush();
  };
  read_it();
  restart();
  EXPECT_EQ(state_->catalog.find("d")->dataset.reads, 1U);
  join("n1");
  read_it();
  EXPECT_EQ(state_->catalog.find("d")->dataset.reads, 2U);
}

TEST_F(Restart, ArgumentsAreKeptByteForByte) {
  auto odd = spec("odd");
  odd.argv = {"cat", "caf\xe9.txt", "gr\xc3\xbc\xc3\x9f", "\xed\xa0\x80", "a\"b\\\n", ""};
  odd.env = {{"NAME", "\xff\xfe"}, {"\xfe", "1"}};
  ASSERT_TRUE(submit({odd}, "once"));
  restart();
  const auto* task = state_->tasks.find(1);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->spec.argv, odd.argv);
  EXPECT_EQ(task->spec.env, odd.env);
  EXPECT_TRUE(submit({odd}, "once")) << "the same again";
  odd.argv[1] = "caf\xe8.txt";
  EXPECT_FALSE(submit({odd}, "once")) << "another file is another request";
}

TEST_F(Restart, WhatCannotBeKeptOrPassedOnIsRefused) {
  auto named = spec("caf\xe9");
  EXPECT_FALSE(submit({named}));
  auto cut = spec();
  cut.argv = {"echo", std::string("a\0b", 3)};
  EXPECT_FALSE(submit({cut})) << "a program would get less than this";
  cut.argv = {"echo"};
  cut.env = {{"A", std::string("\0", 1)}};
  EXPECT_FALSE(submit({cut}));
}

}  // namespace
}  // namespace tierpilot::testing
