// Tasks that the policy keeps back for a full node (policies/scheduling/held_tasks.h), in the
// coordinator.
#pragma once

#include "placing_fixture.h"

namespace tierpilot::testing {

// The full node "b" holds the data "d" and has room in some seconds; to bring it to the idle "a"
// would take one. The policy is patient and waits; the heuristic would not.
class HoldingTest : public PlacingTest {
 protected:
  static constexpr uint64_t kData = 32 << 20;

  void begin(PolicyMode mode = PolicyMode::kEnforce);
  // So soon that the heuristic would wait as well.
  void has_room_soon() { state_->registry.find("b")->assigned_operations = 4e7; }
  uint64_t submit_reader(double operations = 1e7);
  // The policy is asked, and its answer is heard: the task is placed or kept back.
  void decide(uint64_t id);
  // A task that waits for "b".
  uint64_t keep_one_back();
  // Of one that waits for "b" and goes there.
  DecisionRecord decision_after_waiting();

  std::vector<AttemptId> busy_;  // that fill "b"
};

}  // namespace tierpilot::testing
