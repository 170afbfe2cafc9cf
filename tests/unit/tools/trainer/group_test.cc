// Ranks that sum together.
#include "tools/trainer/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/trainer/gang_of_threads.h"

namespace tierpilot::trainer {
namespace {

using ::testing::HasSubstr;

TEST(Group, SumsOverAllRanksToTheSameBits) {
  for (const uint32_t world : {1u, 2u, 3u}) {
    const auto sums = as_gang<std::vector<float>>(world, [](Group& group) {
      const auto rank = static_cast<float>(group.place().rank);
      std::vector<float> values{rank + 1, 0.1f * (rank + 1), 1e-3f / (rank + 1)};
      for (int i = 0; i < 3; ++i)
        if (const auto status = group.sum(values); !status) values = {-1};
      return values;
    });
    const auto ranks = static_cast<float>(world);
    EXPECT_FLOAT_EQ(sums[0][0], ranks * (ranks + 1) / 2 * ranks * ranks);
    for (const auto& sum : sums) EXPECT_EQ(sum, sums[0]);
  }
}

TEST(Group, WhoIsLeftAloneSaysSo) {
  const auto errors = as_gang<std::string>(2, [](Group& group) -> std::string {
    float value = 1;
    if (const auto status = group.sum({&value, 1}); !status) return status.error().message;
    if (group.place().rank == 1) return "left";
    const auto status = group.sum({&value, 1});
    return status ? "" : status.error().message;
  });
  EXPECT_EQ(errors[1], "left");
  EXPECT_THAT(errors[0], HasSubstr("rank 0 of 2 lost the others"));
}

TEST(Group, ARankThatNobodyMeetsSaysWhereItWaited) {
  const auto port = test::free_port();
  for (const uint32_t rank : {0u, 1u}) {
    const auto group = Group::meet({.rank = rank,
                                    .world = 2,
                                    .master_host = "127.0.0.1",
                                    .master_port = port,
                                    .network_interface = ""},
                                   std::chrono::seconds(1));
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, ErrorCode::kUnreachable);
    EXPECT_THAT(group.error().message, HasSubstr("of 2 did not meet the others at 127.0.0.1 port " +
                                                 std::to_string(port)));
  }
}

}  // namespace
}  // namespace tierpilot::trainer
