// Datasets that are asked for again.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/data/data_safety_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class DatasetRequests : public DataSafetyTest {
 protected:
  Result<Dataset> add(const std::string& request_id, uint64_t bytes) {
    std::optional<Result<Dataset>> added;
    datasets_->add(request_id, "d", ZeroSource{bytes}, "n",
                   [&](auto made) { added = std::move(made); });
    EXPECT_TRUE(posts_.run_until([&] { return added.has_value(); }));
    return *added;
  }
};

// Who asks for other bytes must not take those for them.
TEST_F(DatasetRequests, TheSameIdIsTheSameRequestOnlyWithTheSameSource) {
  join("n");
  ASSERT_TRUE(add("once", 4096));
  const auto again = add("once", 4096);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->bytes, 4096u);
  const auto other = add("once", 1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kConflict);
  EXPECT_THAT(other.error().message, HasSubstr("was used before to make it of 4096 zero bytes"));
  EXPECT_THAT(add("", 4096).error().message, HasSubstr("exists already"));
}

}  // namespace
}  // namespace tierpilot::testing
