#include "coordinator/core/gangs/unit_order.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

class UnitOrderTest : public CoreTest {
 protected:
  Status order(bool drain) {
    std::optional<Status> told;
    order_unit(*state_, {.unit = unit_, .drain = drain, .reason = "fan"},
               [&](Status status) { told = std::move(status); });
    EXPECT_TRUE(posts_.run_until([&] { return told.has_value(); }));
    return *told;
  }
  std::string drained() { return state_->units.drained_because(unit_); }

  const std::string unit_ = cpu_unit_id("a", 0);
};

TEST_F(UnitOrderTest, HoldsAlsoAfterARestart) {
  join("a");
  ASSERT_TRUE(order(true));
  EXPECT_EQ(drained(), "fan");
  restart();
  join("a", 8);
  EXPECT_EQ(drained(), "fan");
  ASSERT_TRUE(order(false));
  EXPECT_EQ(drained(), "");
  restart();
  join("a", 8);
  EXPECT_EQ(drained(), "");
}

TEST_F(UnitOrderTest, ThatCannotBeWrittenIsNone) {
  join("a");
  const auto rename = [&](const char* sql) {
    store_->write([sql](Db& db) { return db.execute(sql); }, nullptr);
  };
  rename("ALTER TABLE unit_drains RENAME TO away");
  EXPECT_FALSE(order(true));
  EXPECT_EQ(drained(), "");
  rename("ALTER TABLE away RENAME TO unit_drains");
  ASSERT_TRUE(order(true));
  rename("ALTER TABLE unit_drains RENAME TO away");
  EXPECT_FALSE(order(false));
  EXPECT_EQ(drained(), "fan");
}

}  // namespace
}  // namespace tierpilot::testing
