#include "daemon/agent/data/read_turns.h"

#include <gtest/gtest.h>

#include <optional>

namespace tierpilot::agent {
namespace {

const DatasetId kGenes{"genes", 1};

class ReadTurnsTest : public testing::Test {
 protected:
  // What the reader was told is in told[reader].
  ReadTurns::Id ask(const std::string& reader, DatasetId dataset = kGenes, bool reachable = true,
                    bool wait = true) {
    const auto id = turns.ask({std::move(dataset), reader, reachable, wait},
                              [this, reader](const ReadTurns::Answer& answer) {
                                EXPECT_FALSE(told.contains(reader)) << "told twice";
                                told[reader] = answer;
                              });
    return id.value();
  }
  bool has_turn(const std::string& reader) { return told.contains(reader) && told[reader].turn; }
  bool waits(const std::string& reader) { return !told.contains(reader); }
  std::string sent(const std::string& reader) {
    return told.contains(reader) && !told[reader].turn ? told[reader].elsewhere : "";
  }

  ReadTurns turns{2};
  std::map<std::string, ReadTurns::Answer> told;
};

TEST_F(ReadTurnsTest, SoManyReadAtATimeAndTheOthersInTheOrderOfAsking) {
  const auto a = ask("a"), b = ask("b");
  ask("c"), ask("d");
  EXPECT_TRUE(has_turn("a") && has_turn("b") && waits("c") && waits("d"));
  turns.leave(b);
  EXPECT_TRUE(has_turn("c") && waits("d"));
  turns.leave(a);
  EXPECT_TRUE(has_turn("d"));
  EXPECT_EQ(turns.totals().turns, 4u);
}

TEST_F(ReadTurnsTest, WhoDoesNotWaitIsToldAtOnce) {
  const auto a = ask("a", kGenes, true, false);
  EXPECT_TRUE(has_turn("a"));
  ask("b");
  turns.leave(ask("c", kGenes, true, false));
  EXPECT_FALSE(waits("c"));
  EXPECT_FALSE(has_turn("c"));
  EXPECT_EQ(sent("c"), "");
  turns.done(a);
  EXPECT_EQ(turns.totals().waiting, 0u);
  EXPECT_EQ(turns.totals().reading, 1u);
}

TEST_F(ReadTurnsTest, WhoLeavesTheLineIsNotToldAnything) {
  const auto a = ask("a"), b = ask("b"), c = ask("c");
  ask("d");
  turns.leave(c);
  EXPECT_EQ(turns.totals().waiting, 1u);
  turns.leave(a);
  EXPECT_TRUE(waits("c") && has_turn("d"));
  turns.leave(c);  // again
  turns.leave(b);
  turns.leave(b);
  EXPECT_EQ(turns.totals().reading, 1u);
}

TEST_F(ReadTurnsTest, WhoIsDoneLeavesTheTurnToTheFirstAndTakesHalfOfTheOthers) {
  const auto a = ask("a");
  ask("b");
  for (const char* reader : {"c", "d", "e", "f", "g"}) ask(reader);
  turns.done(a);
  EXPECT_TRUE(has_turn("c"));
  EXPECT_EQ(sent("d"), "a");
  EXPECT_TRUE(waits("e"));
  EXPECT_EQ(sent("f"), "a");
  EXPECT_TRUE(waits("g"));
  turns.leave(a);  // its turn is over already
  EXPECT_TRUE(waits("e") && waits("g"));
  EXPECT_EQ(turns.totals().sent_elsewhere, 2u);
}

TEST_F(ReadTurnsTest, WhoWasSentElsewhereHasNothingToGiveBack) {
  const auto a = ask("a");
  ask("b");
  const auto c = ask("c"), d = ask("d");
  ask("e");
  turns.done(a);
  EXPECT_EQ(sent("d"), "a");
  turns.leave(d), turns.done(d);
  EXPECT_TRUE(has_turn("c") && waits("e"));
  turns.leave(c);
  EXPECT_TRUE(has_turn("e"));
}

TEST_F(ReadTurnsTest, OnlyThoseOfTheSameVersionAreSentElsewhere) {
  const auto a = ask("a");
  ask("b");
  ask("other", {"grid", 1});
  ask("another", {"grid", 1});
  ask("newer", {"genes", 2});
  ask("c");
  turns.done(a);
  EXPECT_TRUE(has_turn("other") && waits("another") && waits("newer"));
  EXPECT_EQ(sent("c"), "a");
}

TEST_F(ReadTurnsTest, NobodyIsSentToHimself) {
  const auto a = ask("a"), b = ask("b");
  ask("c");
  // The same node again, for a copy that it will write to.
  std::optional<ReadTurns::Answer> again;
  ASSERT_TRUE(turns.ask({kGenes, "a", true, true}, [&](const auto& answer) { again = answer; }));
  ask("d");
  ask("e");
  turns.done(a);
  EXPECT_FALSE(again) << "the first of those that would go, but it goes nowhere";
  EXPECT_EQ(sent("e"), "a");
  turns.done(b);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->turn);
}

TEST_F(ReadTurnsTest, NobodyIsSentToAnUnreachableReader) {
  const auto a = ask("a", kGenes, false);
  ask("b");
  ask("c");
  ask("d");
  ask("e");
  turns.done(a);
  EXPECT_TRUE(has_turn("c") && waits("d") && waits("e"));
}

TEST_F(ReadTurnsTest, ATurnWithoutSuccessSendsNobodyThere) {
  const auto a = ask("a");
  ask("b");
  ask("c");
  ask("d");
  turns.leave(a);
  EXPECT_TRUE(has_turn("c"));
  turns.done(a);
  EXPECT_TRUE(waits("d"));
  EXPECT_EQ(turns.totals().sent_elsewhere, 0u);
}

TEST_F(ReadTurnsTest, TheLineHasAnEnd) {
  const auto first = ask("a");
  ask("b");
  const auto nobody = [](const ReadTurns::Answer&) {};
  for (size_t i = 0; i < ReadTurns::kMaxLine; ++i)
    ASSERT_TRUE(turns.ask({kGenes, "x", true, true}, nobody));
  const auto refused = turns.ask({kGenes, "x", true, true}, nobody);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(turns.ask({kGenes, "x", true, false}, nobody)) << "this one does not wait";
  turns.leave(first);
  EXPECT_TRUE(turns.ask({kGenes, "x", true, true}, nobody));
}

}  // namespace
}  // namespace tierpilot::agent
