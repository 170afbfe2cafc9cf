#include "holding_fixture.h"

namespace tierpilot::testing {

void HoldingTest::begin(PolicyMode mode) {
  ExternalityWeights patient{};
  for (size_t i = 0; i < kExternalityCount; ++i)
    if (kExternalityTerms[i].name == "serve") patient[i] = 10;
  start_placing(patient, without_control(mode));
  for (const char* name : {"a", "b"})
    state_->registry.find(name)->fetches.add(static_cast<double>(kData), 1);
  add_dataset("d", kData, "b");
  add_replica("d", "b");
  for (int i = 0; i < 4; ++i)  // its two units, and its backlog
    busy_.push_back(assign(submit({spec()})->first_task, "b"));
  state_->registry.find("b")->assigned_operations = 1e10;
}

uint64_t HoldingTest::submit_reader(double operations) {
  auto wanted = spec();
  wanted.datasets = {{"d", false}};
  wanted.float_operations = operations;
  return submit({wanted})->first_task;
}

void HoldingTest::decide(uint64_t id) {
  dispatcher_->pump();
  ASSERT_TRUE(answers_.run_until(
      [&] { return task(id).state == TaskState::kAssigned || state_->held.waits(id); }));
}

uint64_t HoldingTest::keep_one_back() {
  const uint64_t id = submit_reader();
  decide(id);
  EXPECT_TRUE(state_->held.waits(id));
  return id;
}

DecisionRecord HoldingTest::decision_after_waiting() {
  const uint64_t id = keep_one_back();
  EXPECT_TRUE(exit("b", busy_[0], success()));
  decide(id);
  EXPECT_EQ(task(id).node, "b");
  return decisions_of(id).front();
}

}  // namespace tierpilot::testing
