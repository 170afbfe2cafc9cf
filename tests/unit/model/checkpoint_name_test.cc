#include "model/checkpoint_name.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(CheckpointNames, AreReadAsTheyAreWritten) {
  const CheckpointName name{7, 2, 300};
  EXPECT_EQ(to_string(name), "checkpoint.7.2.300");
  EXPECT_EQ(parse_checkpoint_name("checkpoint.7.2.300"), name);
}

TEST(CheckpointNames, OthersAreNone) {
  for (const auto* other :
       {"", "checkpoint.", "checkpoint.7.2", "checkpoint.7.2.", "checkpoint.7.2.3.4",
        "checkpoint.07.2.3", "checkpoint.7.-2.3", "checkpoint.7.99999999999.3", "checkpoint.a.b.c",
        "checkpoint.7.2.3 ", "my.checkpoint.7.2.3"})
    EXPECT_FALSE(parse_checkpoint_name(other)) << other;
}

TEST(CheckpointNames, ALaterTryIsNewerWhateverItsIteration) {
  EXPECT_LT((CheckpointName{7, 2, 300}), (CheckpointName{7, 3, 10}));
  EXPECT_LT((CheckpointName{7, 2, 30}), (CheckpointName{7, 2, 300}));
}

}  // namespace
}  // namespace tierpilot
