#include "base/sysroot.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Sysroot, ParsesIdLists) {
  EXPECT_EQ(*parse_id_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_TRUE(parse_id_list("")->empty());
  for (const char* text : {"a", "1-", "-1", "1,,2", "0-99999999", "3 4"})
    EXPECT_FALSE(parse_id_list(text)) << text;
}

TEST(Sysroot, FormatsIdLists) {
  EXPECT_EQ(format_id_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_id_list({}), "");
}

TEST(Sysroot, ReadsRelativeToItsRoot) {
  Sysroot root("/proc/self");
  auto comm = root.read("/comm");
  ASSERT_TRUE(comm);
  EXPECT_EQ(*comm, "unit_base");
  auto missing = root.read("/no-such-file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tierpilot
