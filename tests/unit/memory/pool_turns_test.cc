// Fetches that take turns at their sources.
#include <fcntl.h>
#include <sys/mman.h>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "daemon/memory/pool/source_choice.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

using Log = std::vector<std::string>;

// Each address answers questions for turns as it is told to, the last answer for ever; without an
// answer it has a turn free. The log has "a?" for a question, "a..." for one that waits.
class TakingTurns : public FakeRemote {
 public:
  using Answer = std::function<Result<TurnAnswer>(int64_t limit_ms, const CancelFlag& cancel)>;

  Result<TurnAnswer> turn(const std::string& address, const DatasetId&, bool wait, int64_t limit_ms,
                          const CancelFlag& cancel) override {
    Answer answer;
    {
      std::lock_guard lock(mutex);
      log.push_back(address + (wait ? "..." : "?"));
      auto& script = answers[log.back()];
      if (script.empty()) return TurnAnswer{std::make_unique<Turn>(*this, address), {}};
      answer = script.front();
      if (script.size() > 1) script.erase(script.begin());
    }
    return answer(limit_ms, cancel);
  }

  struct Turn : ReadTurn {
    Turn(TakingTurns& at, std::string address) : at(at), address(std::move(address)) {
      ++at.held[this->address];
    }
    ~Turn() override { --at.held[address]; }
    void done() override { at.log.push_back(address + " done"); }
    TakingTurns& at;
    const std::string address;
  };

  Answer granted(const std::string& address) {
    return [=, this](auto&&...) -> Result<TurnAnswer> {
      return TurnAnswer{std::make_unique<Turn>(*this, address), {}};
    };
  }
  static Answer none() {
    return [](auto&&...) -> Result<TurnAnswer> { return TurnAnswer{}; };
  }
  static Answer sent_to(const std::string& elsewhere) {
    return [=](auto&&...) -> Result<TurnAnswer> { return TurnAnswer{nullptr, elsewhere}; };
  }
  static Answer broken(ErrorCode code = ErrorCode::kUnreachable) {
    return [=](auto&&...) -> Result<TurnAnswer> {
      return tl::unexpected(Error{code, "nobody answers"});
    };
  }

  std::map<std::string, std::vector<Answer>> answers;  // by what the log says
  std::map<std::string, int> held;
  Log log;
};

class TurnsTest : public ::testing::Test {
 protected:
  // All addresses hold the dataset.
  void hold(const std::vector<std::string>& addresses) {
    for (const auto& address : addresses) remote.put(address, "genes", 1, data);
  }
  void busy(const std::vector<std::string>& addresses) {
    for (const auto& address : addresses) remote.answers[address + "?"] = {TakingTurns::none()};
  }
  Result<std::unique_ptr<ReadTurn>> run(const std::vector<std::string>& sources,
                                        int64_t patience_ms = kTurnPatienceMs) {
    const DatasetId id{"genes", 1, digest_of(data)};
    return fetch(remote, sources, id, data.size(), file.get(), cancel, patience_ms);
  }
  std::string fetched() {
    std::string out(data.size(), '\0');
    EXPECT_EQ(::pread(file.get(), out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
    return out;
  }

  const std::string data = content(4 * kMiB, 'a');
  TakingTurns remote;
  UniqueFd file{::memfd_create("fetch", 0)};
  CancelFlag cancel{false};
};

TEST_F(TurnsTest, ReadsWhereATurnIsFreeAndHoldsItUntilTheEnd) {
  hold({"a", "b", "c"});
  busy({"a"});
  remote.hook = [&](auto&) { EXPECT_EQ(remote.held["b"], 1); };
  auto turn = run({"a", "b", "c"});
  ASSERT_TRUE(turn);
  EXPECT_EQ(remote.log, (Log{"a?", "b?"}));
  EXPECT_EQ(remote.bytes_read["b"], data.size());
  EXPECT_EQ(remote.reads["a"], 0);
  EXPECT_EQ(fetched(), data);
  (*turn)->done();
  turn->reset();
  EXPECT_EQ(remote.held["b"], 0);
  EXPECT_EQ(remote.log.back(), "b done");
}

TEST_F(TurnsTest, AsksFourAndThenWaitsAtTheFirst) {
  hold({"a", "b", "c", "d", "e"});
  busy({"a", "b", "c", "d", "e"});
  ASSERT_TRUE(run({"a", "b", "c", "d", "e"}));
  EXPECT_EQ(remote.log, (Log{"a?", "b?", "c?", "d?", "a..."}));
  EXPECT_EQ(remote.bytes_read["a"], data.size());
}

TEST_F(TurnsTest, GoesWhereItIsSent) {
  hold({"a", "x"});
  busy({"a"});
  remote.answers["a..."] = {TakingTurns::sent_to("x")};
  ASSERT_TRUE(run({"a"}));
  EXPECT_EQ(remote.log, (Log{"a?", "a...", "x..."}));
  EXPECT_EQ(remote.bytes_read["x"], data.size());
  EXPECT_EQ(fetched(), data);
}

TEST_F(TurnsTest, GoesFromLineToLine) {
  hold({"a", "x", "y"});
  busy({"a"});
  remote.answers["a..."] = {TakingTurns::sent_to("x")};
  remote.answers["x..."] = {TakingTurns::sent_to("y")};
  ASSERT_TRUE(run({"a"}));
  EXPECT_EQ(remote.log, (Log{"a?", "a...", "x...", "y..."}));
  EXPECT_EQ(remote.bytes_read["y"], data.size());
}

TEST_F(TurnsTest, GoesBackIntoTheLineIfNobodyIsThere) {
  hold({"a"});
  busy({"a"});
  remote.answers["a..."] = {TakingTurns::sent_to("x"), remote.granted("a")};
  remote.answers["x..."] = {TakingTurns::broken()};
  ASSERT_TRUE(run({"a"}));
  EXPECT_EQ(remote.log, (Log{"a?", "a...", "x...", "a..."}));
  EXPECT_EQ(remote.bytes_read["a"], data.size());
}

// Each address that it is sent to sends it to one that nobody has named before.
TEST_F(TurnsTest, IsNotSentOnForEver) {
  hold({"a", "b"});
  busy({"a", "b"});
  remote.answers["a..."] = {TakingTurns::sent_to("x0")};
  for (int i = 0; i < 100; ++i)
    remote.answers[fmt::format("x{}...", i)] = {TakingTurns::sent_to(fmt::format("x{}", i + 1))};
  ASSERT_TRUE(run({"a", "b"}));
  EXPECT_LE(remote.log.size(), 30u);
  EXPECT_EQ(remote.bytes_read["b"], data.size());
}

// It hangs: what was to be waited for turns is left for others.
TEST_F(TurnsTest, ASourceThatDoesNotAnswerTakesLittlePatience) {
  hold({"a", "b"});
  int64_t limit_ms = 0;
  remote.answers["a?"] = {[&](int64_t limit, const CancelFlag&) -> Result<TurnAnswer> {
    limit_ms = limit;
    return fail(ErrorCode::kTimeout, "no answer");
  }};
  ASSERT_TRUE(run({"a", "b"}));
  EXPECT_LE(limit_ms, kTurnPatienceMs / 5);
  EXPECT_EQ(remote.reads["a"], 0);
  EXPECT_EQ(remote.bytes_read["b"], data.size());
}

TEST_F(TurnsTest, IsNotSentInCircles) {
  hold({"a", "b"});
  busy({"a", "b"});
  remote.answers["a..."] = {TakingTurns::sent_to("x")};
  remote.answers["x..."] = {TakingTurns::sent_to("a")};
  ASSERT_TRUE(run({"a", "b"}));
  EXPECT_EQ(remote.log.back(), "b...");
  EXPECT_LE(remote.log.size(), 7u);
  EXPECT_EQ(remote.bytes_read["b"], data.size());
}

TEST_F(TurnsTest, WhereItWasSentInVainItIsNotAskedAgain) {
  hold({"a", "b", "x"});
  busy({"a", "b"});
  remote.fail_from["x"] = 3 * kMiB;
  remote.answers["a..."] = {TakingTurns::sent_to("x")};
  ASSERT_TRUE(run({"a", "b"}));
  // The second time "a" is of no use, and the line of the next one is.
  EXPECT_EQ(remote.log, (Log{"a?", "b?", "a...", "x...", "a?", "b?", "a...", "b..."}));
  EXPECT_EQ(remote.bytes_read["x"], 3 * kMiB);
  EXPECT_EQ(remote.bytes_read["b"], 1 * kMiB) << "goes on where the other one broke";
  EXPECT_EQ(remote.held["x"], 0);
  EXPECT_EQ(fetched(), data);
}

TEST_F(TurnsTest, SourcesWithoutAnAnswerArePassedOver) {
  hold({"a", "b", "c"});
  remote.answers["dead?"] = {TakingTurns::broken()};
  remote.answers["full?"] = {TakingTurns::broken(ErrorCode::kExhausted)};
  ASSERT_TRUE(run({"dead", "full", "c"}));
  EXPECT_EQ(remote.log, (Log{"dead?", "full?", "c?"}));
  EXPECT_EQ(remote.reads["dead"], 0);
  EXPECT_EQ(remote.bytes_read["c"], data.size());
}

TEST_F(TurnsTest, ALineThatBreaksLeadsToTheNext) {
  hold({"a", "b"});
  busy({"a", "b"});
  remote.answers["a..."] = {TakingTurns::broken(ErrorCode::kExhausted)};
  ASSERT_TRUE(run({"a", "b"}));
  EXPECT_EQ(remote.log, (Log{"a?", "b?", "a...", "b..."}));
}

TEST_F(TurnsTest, AnAnswerThatSaysNothingEndsTheWaiting) {
  hold({"a"});
  busy({"a"});
  remote.answers["a..."] = {TakingTurns::none()};
  ASSERT_TRUE(run({"a"}));
  EXPECT_EQ(remote.log, (Log{"a?", "a..."}));
  EXPECT_EQ(remote.bytes_read["a"], data.size());
}

TEST_F(TurnsTest, WhoseTurnsAreRefusedIsReadWithoutOne) {
  hold({"b"});
  for (const char* source : {"a?", "b?"}) remote.answers[source] = {TakingTurns::broken()};
  ASSERT_TRUE(run({"a", "b"}));
  EXPECT_EQ(remote.log, (Log{"a?", "b?"}));
  EXPECT_EQ(remote.bytes_read["b"], data.size());
}

TEST_F(TurnsTest, AllThatFailedAreNamed) {
  busy({"a"});
  remote.answers["b?"] = {TakingTurns::broken()};
  remote.answers["a..."] = {TakingTurns::sent_to("x")};
  const auto turn = run({"a", "b"});
  ASSERT_FALSE(turn);
  EXPECT_EQ(turn.error().code, ErrorCode::kUnreachable);
  for (const char* address : {"'a'", "'b'", "'x'"})
    EXPECT_NE(turn.error().message.find(address), std::string::npos) << turn.error().message;
}

TEST_F(TurnsTest, PatienceIsForAllWaitingTogether) {
  constexpr int64_t kPatienceMs = 200;
  hold({"a", "b"});
  busy({"a", "b"});
  remote.fail_from["x"] = 1 * kMiB;
  hold({"x"});
  int64_t waited_ms = 0;
  const auto wait = [&](int64_t ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    waited_ms += ms;
  };
  remote.answers["a..."] = {[&](int64_t limit_ms, const CancelFlag&) -> Result<TurnAnswer> {
                              wait(limit_ms / 2);
                              return TurnAnswer{nullptr, "x"};
                            },
                            [&](int64_t limit_ms, const CancelFlag&) -> Result<TurnAnswer> {
                              wait(limit_ms);
                              return fail(ErrorCode::kTimeout, "no turn");
                            }};
  ASSERT_TRUE(run({"a", "b"}, kPatienceMs));
  EXPECT_LE(waited_ms, kPatienceMs);
  EXPECT_EQ(remote.log, (Log{"a?", "b?", "a...", "x...", "a?", "b?", "a..."}));
  EXPECT_EQ(remote.bytes_read["a"], data.size() - 1 * kMiB) << "without a turn, at the first";
  EXPECT_EQ(fetched(), data);
}

TEST_F(TurnsTest, CancelEndsTheWaiting) {
  hold({"a", "b"});
  busy({"a", "b"});
  remote.answers["a..."] = {[&](int64_t, const CancelFlag&) -> Result<TurnAnswer> {
    cancel = true;
    return fail(ErrorCode::kConflict, "cancelled");
  }};
  const auto turn = run({"a", "b"});
  ASSERT_FALSE(turn);
  EXPECT_EQ(turn.error().code, ErrorCode::kConflict);
  EXPECT_EQ(remote.log, (Log{"a?", "b?", "a..."}));
  EXPECT_TRUE(remote.reads.empty());
}

class PoolTurnsTest : public PoolTest {
 protected:
  std::shared_ptr<TakingTurns> open_with_turns(const std::string& data) {
    auto turns = std::make_shared<TakingTurns>();
    turns->put("far", "genes", 1, data);
    remote = turns;
    open();
    return turns;
  }
};

TEST_F(PoolTurnsTest, DoneWhenOthersCanReadIt) {
  const auto turns = open_with_turns(content(kMiB, 'a'));
  use(remote_item("genes", kMiB));
  EXPECT_EQ(turns->log, (Log{"far?", "far done"}));
  EXPECT_EQ(turns->held["far"], 0);
}

TEST_F(PoolTurnsTest, AWritersOwnCopyIsForNobodyElse) {
  const auto turns = open_with_turns(content(kMiB, 'a'));
  auto item = remote_item("genes", kMiB);
  item.write = true;
  const auto served = serve("writer", {item});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(turns->log, Log{"far?"});
  EXPECT_EQ(turns->held["far"], 0);
}

}  // namespace
}  // namespace tierpilot
