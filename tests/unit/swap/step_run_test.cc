// A step is done when what it leaves behind is there.
#include "policies/swap/machine/step_run.h"

#include <gtest/gtest.h>

#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {
namespace {

// Lets go of what comes back, before anybody has it.
class Hasty : public Manager {
 public:
  bool make_room(Machine& machine, int64_t bytes) override { return machine.device().fits(bytes); }
  void after(Machine& machine, OperatorId) override {
    hasty_ = true;
    drop(machine);
  }
  void arrived(Machine& machine, StorageId storage) override {
    last_ = storage;
    if (hasty_) drop(machine);
  }
  void unlocked(Machine& machine, StorageId storage) override { arrived(machine, storage); }

 private:
  void drop(Machine& machine) const {
    if (machine.device().evictable(last_)) machine.drop(last_);
  }
  StorageId last_ = 0;
  bool hasty_ = false;
};

class Still : public Manager {
 public:
  bool make_room(Machine& machine, int64_t bytes) override { return machine.device().fits(bytes); }
};

Graph one_output() {
  GraphBuilder builder;
  const std::string args[] = {"w"};
  const NewTensor results[] = {{"a", 100}};
  EXPECT_TRUE(builder.constant("w", 100));
  EXPECT_TRUE(builder.call("f", args, results, 10));
  return builder.take("one");
}

TEST(StepRun, IsNotDoneWithoutAnOutput) {
  const auto graph = one_output();
  Still still;
  EXPECT_TRUE(run_step(graph, {.budget_bytes = 1000}, still).done);
  Hasty hasty;
  const auto outcome = run_step(graph, {.budget_bytes = 1000}, hasty);
  EXPECT_FALSE(outcome.done);
  EXPECT_FALSE(outcome.reason.empty());
}

}  // namespace
}  // namespace tierpilot::swap
