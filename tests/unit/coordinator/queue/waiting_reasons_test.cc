// What a task that no node can take is said to wait for.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/placing_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class WaitingReasons : public PlacingTest {
 protected:
  // Of nodes "a" and "b".
  WaitingReasons() { start_placing({}, without_control(PolicyMode::kEnforce)); }
  void cordon(const std::string& node) {
    state_->registry.set_order(node, {NodeOrder::Kind::kCordoned});
  }
  void lose(const std::string& node) {
    state_->registry.set_life(*state_->registry.find(node), NodeLife::kLost);
  }
  uint64_t submit_to(const std::string& node) {
    auto bound = spec("");
    bound.node = node;
    return submit({bound})->first_task;
  }
  std::string why(uint64_t id) {
    dispatcher_->pump();
    return task(id).reason;
  }
};

TEST_F(WaitingReasons, NodesThatTakeNoTasksAreNotTooSmall) {
  cordon("a");
  cordon("b");
  const auto id = submit({spec("")})->first_task;
  EXPECT_EQ(why(id), "waiting for a node that takes tasks: of the 2 that are up none does");
  lose("a");
  lose("b");
  EXPECT_EQ(why(id), "waiting for a node: none is up");
}

TEST_F(WaitingReasons, OfATaskForOneNodeThatNodeIsTheReason) {
  cordon("a");
  const auto id = submit_to("a");
  EXPECT_THAT(why(id), HasSubstr("its node 'a', which is closed: cordoned"));
  lose("a");
  EXPECT_EQ(why(id), "waiting for its node 'a', which is lost");
  lose("b");
  EXPECT_EQ(why(id), "waiting for its node 'a', which is lost");
}

TEST_F(WaitingReasons, ANodeIsTooSmallWhereOthersTakeTasks) {
  const auto id = submit({spec("")})->first_task;
  cordon("a");
  state_->tasks.find(id)->spec.units = 3;
  EXPECT_THAT(why(id), HasSubstr("large enough: none of those that take tasks is"));
}

}  // namespace
}  // namespace tierpilot::testing
