#include "rpc/protocol.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

ProgramVersion program(const char* name, const char* version, uint16_t oldest, uint16_t newest) {
  return {.program = name, .version = version, .protocol = newest, .oldest_protocol = oldest};
}

TEST(Protocol, ProgramsWithANumberInCommonUnderstandEachOther) {
  const auto own = program("tierpilotd", "1.0", 2, 4);
  for (const auto& other : {program("c", "", 1, 2), program("c", "", 4, 9), program("c", "", 3, 3)})
    EXPECT_TRUE(check_programs(own, other)) << other.label();
}

TEST(Protocol, OthersAreRefusedWithASentenceThatNamesBothAndTheOlder) {
  const auto own = program("tierpilotd", "1.0", 2, 4);
  const auto newer = check_programs(own, program("tierpilot-coordinator", "3.0", 5, 7));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(newer.error().message,
            "tierpilotd 1.0 (protocols 2 to 4) and tierpilot-coordinator 3.0 (protocols 5 to 7) do "
            "not understand each other: update tierpilotd");
  const auto older = check_programs(own, program("tierctl", "0.1", 1, 1));
  ASSERT_FALSE(older);
  EXPECT_THAT(older.error().message, HasSubstr("tierctl 0.1 (protocol 1)"));
  EXPECT_THAT(older.error().message, HasSubstr("update tierctl"));
}

TEST(Protocol, WhoTellsNothingIsOfTheFirstAndKnowsNoFeature) {
  capnp::MallocMessageBuilder message;
  const auto silent = read_program(message.initRoot<wire::Program>(), "a client");
  EXPECT_EQ(silent.label(), "a client (protocol 1)");
  EXPECT_FALSE(silent.can(kGangFeature));
  EXPECT_TRUE(check_programs(own_program("tierpilot-coordinator"), silent));
}

TEST(Protocol, IsToldWhole) {
  capnp::MallocMessageBuilder message;
  const auto own = own_program("tierctl");
  write_program(own, message.initRoot<wire::Program>());
  const auto told = read_program(message.getRoot<wire::Program>(), "?");
  EXPECT_EQ(told.label(), own.label());
  EXPECT_EQ(told.features, own.features);
  EXPECT_TRUE(told.can(kGangFeature));
}

}  // namespace
}  // namespace tierpilot
