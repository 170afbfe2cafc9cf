#include "coordinator/config.h"

#include <gmock/gmock.h>

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

Result<CoordinatorConfig> read(std::string_view toml) {
  return read_coordinator_config(*ConfigReader::parse(toml, "coordinator.toml"));
}

TEST(CoordinatorConfig, TheQueueIsServedShortestFirstUnlessArrivalIsWanted) {
  const auto order = [](std::string_view toml) { return read(toml)->core.service_order; };
  EXPECT_EQ(order(""), ServiceOrder::kShortest);
  EXPECT_EQ(order("[queue]\norder = \"shortest\""), ServiceOrder::kShortest);
  EXPECT_EQ(order("[queue]\norder = \"arrival\""), ServiceOrder::kArrival);
}

TEST(CoordinatorConfig, AnUnknownOrderIsNamedBesideWhatThereIs) {
  const auto config = read("[queue]\norder = \"Shortest\"\nmax_attempts = 0");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("queue.order: must be one of shortest, arrival"));
  EXPECT_THAT(config.error().message, HasSubstr("max_attempts")) << "all that is wrong at once";
}

}  // namespace
}  // namespace tierpilot
