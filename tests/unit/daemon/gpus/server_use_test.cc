// Of an MPS server's time on a GPU, what was each client's.
#include "daemon/agent/gpus/server_use.h"

#include <gmock/gmock.h>

namespace tierpilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ServerUse, IsDividedByShares) {
  EXPECT_THAT(server_use(900, {{300, 1000}, {600, 1000}}), ElementsAre(300, 600));
  EXPECT_THAT(server_use(0, {{300, 300}}), ElementsAre(0));
  EXPECT_THAT(server_use(900, {}), IsEmpty());
  EXPECT_THAT(server_use(900, {{0, 1000}, {0, 1000}}), ElementsAre(0, 0));
}

// Two that are held to 300 and 600 of 1000, and are never idle, leave a tenth of the GPU idle.
TEST(ServerUse, IsNoMoreThanTheMultiprocessorsOfEachCanDo) {
  EXPECT_THAT(server_use(1000, {{300, 300}, {600, 600}}), ElementsAre(300, 600));
  EXPECT_THAT(server_use(1000, {{300, 500}}), ElementsAre(500));
}

}  // namespace
}  // namespace tierpilot::agent
