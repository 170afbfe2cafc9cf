#include "daemon/agent/link/wire.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <memory>

namespace tierpilot::agent {
namespace {

class WireTest : public testing::Test {
 protected:
  wire::Assignment::Builder assignment() {
    auto made = message.initRoot<wire::Assignment>();
    made.initAttempt().setTask(3);
    made.initArgv(1).set(0, "/bin/true");
    made.setUnits(2);
    return made;
  }
  std::string refusal(wire::Assignment::Builder from) {
    auto read = read_assignment(from.asReader());
    return read ? "none" : read.error().message;
  }
  // Behind a pointer: its destructor may throw, those of tests must not.
  std::unique_ptr<capnp::MallocMessageBuilder> holder =
      std::make_unique<capnp::MallocMessageBuilder>();
  capnp::MallocMessageBuilder& message = *holder;
};

TEST_F(WireTest, ReadsAnAssignment) {
  auto from = assignment();
  auto variable = from.initEnv(1)[0];
  variable.setName("A");
  variable.setValue("b=c");
  auto need = from.initDatasets(1)[0];
  need.setDataset("d");
  need.setWrite(true);
  need.initSources(1).set(0, "unix:/x");
  from.setReckoning(7);
  from.setPlaceS(12.5);
  from.setSwapRoomBytes(5 << 20);
  auto read = read_assignment(from.asReader());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->attempt.task, 3u);
  EXPECT_EQ(read->env.at(0).second, "b=c");
  EXPECT_TRUE(read->datasets.at(0).write);
  EXPECT_EQ(read->reckoning, 7);
  EXPECT_EQ(read->swap_room_bytes, 5u << 20);
  EXPECT_EQ(read->place_s, 12.5);
  EXPECT_EQ(read->datasets.at(0).sources.at(0), "unix:/x");
  EXPECT_EQ(read->memory_wish.kind, MemoryWish::Kind::kNone);
}

TEST_F(WireTest, ReadsNameAndMemoryTier) {
  auto from = assignment();
  from.setName("sort");
  from.setMemoryTier("heap:2,1");
  const auto read = read_assignment(from.asReader());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "sort");
  EXPECT_EQ(read->memory_wish.kind, MemoryWish::Kind::kHeap);
  EXPECT_EQ(read->memory_wish.fast_weight, 2u);
  from.setMemoryTier("heap:0,1");
  EXPECT_NE(refusal(from).find("task 3 attempt 0: memory tier 'heap:0,1'"), std::string::npos);
}

TEST_F(WireTest, WritesWhatBecameOfTheMemoryTier) {
  ExitedEvent exited;
  exited.exit.memory_tier = "no effect";
  exited.exit.no_room_bytes = 4096;
  exited.exit.memory.push_back({"page_faults", 7.0});
  auto event = message.initRoot<wire::NodeEvent>();
  write_event(event, Event{9, exited}, 1);
  EXPECT_EQ(event.getExited().getExit().getMemoryTier(), "no effect");
  EXPECT_EQ(event.getExited().getExit().getNoRoomBytes(), 4096U);
  ASSERT_EQ(event.getExited().getExit().getMemory().size(), 1u);
  EXPECT_EQ(event.getExited().getExit().getMemory()[0].getValue().getValue(), 7);
}

TEST_F(WireTest, AnEndThatIsToldLateSaysHowLongAgoItWas) {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  auto event = message.initRoot<wire::NodeEvent>();
  write_event(event, Event{9, ExitedEvent{.at_ns = 3 * kSecond_ns}}, 10 * kSecond_ns);
  EXPECT_EQ(event.getExited().getExit().getAgoMs(), 7'000u);
  // Where it is not known when it was, it is told as if it was now.
  write_event(event, Event{9, ExitedEvent{}}, 10 * kSecond_ns);
  EXPECT_EQ(event.getExited().getExit().getAgoMs(), 0u);
}

TEST_F(WireTest, RefusesHostileStrings) {
  auto from = assignment();
  from.initArgv(1).set(0, kj::StringPtr("a\0b", 3));
  EXPECT_NE(refusal(from).find("NUL"), std::string::npos);
  from = assignment();
  from.initEnv(1)[0].setName("A=B");
  EXPECT_NE(refusal(from).find("'A=B'"), std::string::npos);
  from = assignment();
  from.initEnv(1)[0].setName("");
  EXPECT_NE(refusal(from), "none");
}

TEST_F(WireTest, RefusesImpossibleShapes) {
  auto from = assignment();
  from.initArgv(5000);
  EXPECT_NE(refusal(from).find("4096"), std::string::npos);
  from = assignment();
  auto needs = from.initDatasets(2);
  needs[0].setDataset("d");
  needs[1].setDataset("d");
  EXPECT_NE(refusal(from).find("'d' is named twice"), std::string::npos);
  from = assignment();
  from.setTimeLimitMs(-1);
  EXPECT_NE(refusal(from).find("time limit"), std::string::npos);
}

TEST_F(WireTest, WritesWhatIsUnknownAsUnavailable) {
  ExitedEvent exited;
  exited.attempt = {1, 2};
  exited.exit.how = TaskEnd::kDataFailed;
  auto event = message.initRoot<wire::NodeEvent>();
  write_event(event, Event{9, exited}, 1);
  EXPECT_EQ(event.getSequence(), 9u);
  EXPECT_TRUE(event.getExited().getExit().getIoReadBytes().isUnavailable());
  exited.exit.process.emplace().read_bytes = 5;
  write_event(event, Event{9, exited}, 1);
  EXPECT_EQ(event.getExited().getExit().getIoReadBytes().getValue(), 5);
  EXPECT_TRUE(event.getExited().getExit().getIoWriteBytes().isUnavailable());
}

}  // namespace
}  // namespace tierpilot::agent
