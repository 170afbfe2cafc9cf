// What the operator's health commands say of units, in real processes.
#include "daemon/agent/units/health_checks.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

namespace tierpilot::agent {
namespace {

using ::testing::HasSubstr;

class Checks : public testing::Test {
 protected:
  static HealthCheck shell(const std::string& unit, const std::string& script) {
    return {unit, {"/bin/sh", {"-c", script}, {{"TIERPILOT_UNIT", "n1/" + unit}}}};
  }
  void begin(std::vector<HealthCheck> checks, int64_t timeout_ms = 30'000) {
    checks_ = std::make_unique<HealthChecks>(
        std::move(checks), HealthChecks::Options{.period_ms = 10, .timeout_ms = timeout_ms},
        HealthChecks::Hooks{.post = [](std::function<void()> work) { work(); },
                            .found =
                                [this](const std::string& unit, const std::string& reason) {
                                  const std::lock_guard lock(mutex_);
                                  said_.insert({unit, reason});
                                  more_.notify_all();
                                }});
  }
  // The first answer of the unit's that is not `but`.
  std::string said_of(const std::string& unit, const std::string& but = "nothing yet") {
    std::unique_lock lock(mutex_);
    std::string found = "never";
    more_.wait_for(lock, std::chrono::seconds(60), [&] {
      for (const auto& [who, reason] : said_)
        if (who == unit && reason != but) return found = reason, true;
      return false;
    });
    return found;
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::set<std::pair<std::string, std::string>> said_;
  std::unique_ptr<HealthChecks> checks_;
};

TEST_F(Checks, AnEndOtherThanZeroSpeaksAgainstTheUnitInTheCommandsOwnWords) {
  begin({shell("cpu/0", "exit 0"),
         shell("cpu/1", "echo; echo \"ECC of $TIERPILOT_UNIT\" >&2; exit 3"),
         shell("gpu/a", "kill -SEGV $$")});
  EXPECT_EQ(said_of("cpu/0"), "");
  EXPECT_EQ(said_of("cpu/1"), "health command ended with 3: ECC of n1/cpu/1");
  EXPECT_EQ(said_of("gpu/a"), "health command ended with 139");
}

TEST_F(Checks, AreAskedAgainAndNoticeAChange) {
  const auto file = testing::TempDir() + "/sick-" + std::to_string(::getpid());
  begin({shell("cpu/0", "if [ -e " + file + " ]; then rm " + file + "; else touch " + file +
                            "; echo sick; exit 1; fi")});
  EXPECT_THAT(said_of("cpu/0", ""), HasSubstr("sick"));
  EXPECT_EQ(said_of("cpu/0", "health command ended with 1: sick"), "");
  checks_.reset();
  ::unlink(file.c_str());
}

TEST_F(Checks, OneThatDoesNotEndSpeaksAgainstTheUnitAndTheNextOneIsAskedAllTheSame) {
  begin({shell("gpu/a", "sleep 100"), shell("gpu/b", "exit 0")}, 200);
  EXPECT_THAT(said_of("gpu/a"), HasSubstr("did not end within 200 ms"));
  EXPECT_EQ(said_of("gpu/b"), "");
}

TEST_F(Checks, HostileOutputIsTextAndBounded) {
  begin({shell("cpu/0", "head -c 3000000 /dev/zero; printf '\\033[2J'; exit 1")});
  const auto said = said_of("cpu/0");
  EXPECT_LT(said.size(), 300u);
  EXPECT_EQ(said.find('\0'), said.npos);
  EXPECT_EQ(said.find('\033'), said.npos);
}

TEST_F(Checks, WordsOfAnyLanguageAreToldAsTheyAre) {
  begin({shell("cpu/0", "printf '\\303\\251teint, 80 \\302\\260C'; exit 1"),
         shell("cpu/1", "printf 'caf\\351'; exit 1")});
  EXPECT_EQ(said_of("cpu/0"), "health command ended with 1: éteint, 80 °C");
  EXPECT_EQ(said_of("cpu/1"), "health command ended with 1: caf?");
}

TEST_F(Checks, AProgramThatIsGoneSaysNothingOfTheUnit) {
  begin({{"cpu/0", {"/no/such/program"}}, shell("cpu/1", "exit 0")});
  EXPECT_EQ(said_of("cpu/1"), "");
  checks_.reset();
  for (const auto& [unit, reason] : said_) EXPECT_EQ(unit, "cpu/1") << reason;
}

TEST_F(Checks, StoppingDoesNotWaitForACommand) {
  begin({shell("cpu/0", "exit 0"), shell("cpu/1", "sleep 1000")}, 1'000'000);
  EXPECT_EQ(said_of("cpu/0"), "");
  checks_.reset();  // or the test's own time limit ends it
}

}  // namespace
}  // namespace tierpilot::agent
