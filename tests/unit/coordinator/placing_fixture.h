// A coordinator's core that places tasks with the dqn, whose answers arrive when the test says so.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/dispatcher.h"
#include "core_fixture.h"
#include "policies/placement/dqn/externality.h"

namespace tierpilot::testing {

class PlacingTest : public CoreTest {
 protected:
  // The decision thread posts into this object.
  ~PlacingTest() override { host_.reset(); }

  // The dqn is trusted, explores nothing, and goes by the estimates and by what it takes a
  // placement to cost others. Nodes "a" and "b" are up, with two units each.
  void start_placing(const ExternalityWeights& others, const OversightSettings& settings);
  static OversightSettings without_control(PolicyMode mode);

  // On the node, with what it holds of a dataset of this name in fast memory.
  void add_replica(const std::string& dataset, const std::string& node);
  // The timers that are set go off; what they set is left.
  void ring() {
    for (const auto& timer : std::exchange(timers_, {})) timer();
  }
  // What was asked is answered, until the task has been given to a node.
  bool is_placed(uint64_t id) {
    return answers_.run_until([&] { return task(id).state == TaskState::kAssigned; });
  }
  const Task& task(uint64_t id) const { return *state_->tasks.find(id); }
  // All that was decided about it, as written down.
  std::vector<DecisionRecord> decisions_of(uint64_t id);

  std::shared_ptr<FakeNode> a_;
  PostQueue answers_;  // of the policies, on their way to the event loop
  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::vector<std::function<void()>> timers_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace tierpilot::testing
