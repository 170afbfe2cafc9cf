#include "base/dataset_env.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(DatasetEnv, UpperCasesAndReplaces) {
  EXPECT_EQ(dataset_env_name("genes"), "TIERPILOT_DATASET_GENES");
  EXPECT_EQ(dataset_env_name("genes-2024.bin"), "TIERPILOT_DATASET_GENES_2024_BIN");
  EXPECT_EQ(dataset_env_name("\xc3\xa9"), "TIERPILOT_DATASET___");
}

}  // namespace
}  // namespace tierpilot
