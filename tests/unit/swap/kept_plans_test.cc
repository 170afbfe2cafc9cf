// What is kept for the next run comes back as it was, and nothing else does.
#include "policies/swap/learning/kept_plans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/content_digest.h"
#include "base/random.h"
#include "policies/swap/learning/step_learner.h"

namespace tierpilot::swap {
namespace {

constexpr auto kSettings = "0.1.0 swap 1000";

// Three saves that are used in the other order.
ObservedStep step_of(uint64_t place) {
  ObservedStep step;
  for (uint64_t i = 0; i < 3; ++i)
    step.saves.push_back({.place = place + i, .kind = 1, .bytes = 100});
  step.uses = {2, 1, 0};
  step.time_ns.assign(7, 1000);
  step.other_bytes.assign(7, 50);
  return step;
}

KeptPlans plans() {
  return {.steps = {{.step = step_of(1), .away = {1, 0, 1}, .margin_bytes = -7, .widened = 3},
                    {.step = step_of(~uint64_t{9}), .away = {0, 0, 0}, .explorations = 2}},
          .segments = {{.first = ~uint64_t{0}, .again = {{5, true}, {6, false}}}}};
}

// The same bytes with a checksum that fits.
std::string sealed(const std::string& bytes) {
  const auto line = bytes.find('\n');
  const auto text = bytes.substr(line + 1);
  return fmt::format("tierpilot-swap-plans 2 {}\n{}", to_string(digest_of(text)), text);
}

std::string replaced(std::string bytes, std::string_view what, std::string_view by) {
  const auto at = bytes.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return sealed(bytes.replace(at, what.size(), by));
}

TEST(KeptPlans, ComeBackAsTheyWere) {
  const auto bytes = write_plans(plans(), kSettings);
  const auto read = read_plans(bytes, kSettings);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(write_plans(*read, kSettings), bytes);
  ASSERT_EQ(read->steps.size(), 2U);
  EXPECT_EQ(read->steps[0].away, (std::vector<char>{1, 0, 1}));
  EXPECT_EQ(read->steps[0].margin_bytes, -7);
  EXPECT_EQ(read->steps[1].step.saves[2].place, ~uint64_t{9} + 2);
  EXPECT_EQ(read->segments[0].again, plans().segments[0].again);
  EXPECT_FALSE(read->state_room);
  auto decided = plans();
  decided.state_room = 123;
  const auto with = read_plans(write_plans(decided, kSettings), kSettings);
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->state_room, 123);
  EXPECT_FALSE(read_plans(
      replaced(write_plans(decided, kSettings), "\"state_room\":123", "\"state_room\":-1"),
      kSettings));
}

TEST(KeptPlans, OthersAreRefusedWithTheReason) {
  const auto bytes = write_plans(plans(), kSettings);
  const auto reason = [](const std::string& text, std::string_view settings = kSettings) {
    const auto read = read_plans(text, settings);
    return read ? "nothing" : read.error().message;
  };
  const auto says = [&](const std::string& text, const char* words) {
    EXPECT_NE(reason(text).find(words), std::string::npos) << reason(text);
  };
  EXPECT_NE(reason(bytes, "0.1.0 swap 1001").find("another budget"), std::string::npos);
  says("", "version");
  says("tierpilot-swap-plans 1 " + bytes.substr(23), "version");
  says(bytes.substr(0, bytes.size() - 1), "checksum");
  says(sealed(bytes.substr(0, bytes.size() - 1)), "JSON");
  says(replaced(bytes, "\"101\"", "\"1011\""), "steps[0]: \"away\" has another length");
  says(replaced(bytes, "[2,1,0]", "[2,1,3]"), "uses[2]");
  says(replaced(bytes, "[2,1,0]", "[2,1,1]"), "uses[2]");
  says(replaced(bytes, "[2,1,0]", "[2,-1,0]"), "uses[1]");
  says(replaced(bytes, "1000,1000]", "1000]"), "each interval");
  says(replaced(bytes, "1000,1000]", "1000,9223372036854775807]"), "each interval");
  says(replaced(bytes, "50,50]", "50,-50]"), "each interval");
  // What a graph cannot have, and what takes much memory for few bytes.
  says(replaced(bytes, "1000,1000]", "1000,1125899906842625]"), "each interval");
  says(sealed(bytes.substr(0, bytes.find('\n') + 1) + std::string(1 << 20, '[')), "JSON");
  says(replaced(bytes, "[1,1,100,", "[1,1,0,"), "saves[0]");
  says(replaced(bytes, "[1,1,100,", "[1,1,1125899906842625,"), "saves[0]");
  says(replaced(bytes, "[1,1,100,", "[1,1,18446744073709551615,"), "saves[0]");
  says(replaced(bytes, "[1,1,100,", "[1.5,1,100,"), "saves[0]");
  says(replaced(bytes, "\"segments\":[", "\"segments\":[7,"), "segments[0]");
}

// Whatever the bytes are, there is no crash, and what is taken can be learned from.
TEST(KeptPlans, DamagedBytesAreNoCrash) {
  const auto bytes = write_plans(plans(), kSettings);
  SeededRandom random(11);
  int taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto text = bytes;
    for (auto left = 1 + random.below(4); left > 0; --left) {
      const auto at = random.below(text.size());
      switch (random.below(4)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text[at] = "0123456789-.e,[]{}\"tf"[random.below(21)];
          break;
        case 2:
          text.erase(at, random.below(20));
          break;
        default:
          text.insert(at, text.substr(random.below(text.size()), random.below(20)));
      }
      if (text.empty()) text = " ";
    }
    if (round % 4 != 0) text = sealed(text);
    auto read = read_plans(text, kSettings);
    if (!read) continue;
    ++taken;
    StepLearner learner(
        {.limits = {.budget_bytes = 1000, .recompute = false, .link = {.gb_per_s = 1}}});
    learner.restore(std::move(read->steps));
    learner.begin();
    for (const auto& save : step_of(1).saves) (void)learner.save(save);
    learner.end({.step = step_of(1), .step_ns = 7000}, 0);
  }
  EXPECT_GT(taken, 100);
}

// What `mixed_bits` makes these of.
uint64_t unmixed_bits(uint64_t bits) {
  const auto unshifted = [](uint64_t shifted, int by) {
    uint64_t found = shifted;
    for (int known = by; known < 64; known += by) found = shifted ^ (found >> by);
    return found;
  };
  const auto inverse = [](uint64_t odd) {
    uint64_t found = odd;
    for (int round = 0; round < 6; ++round) found *= 2 - odd * found;
    return found;
  };
  bits = unshifted(bits, 31) * inverse(0x94d049bb133111eb);
  bits = unshifted(bits, 27) * inverse(0xbf58476d1ce4e5b9);
  return unshifted(bits, 30);
}

// A file with one save that is taken for a step's last one, as their hashes are the same.
TEST(StepLearner, AKeptStepThatOnlyLooksLikeThisOneIsNotIt) {
  constexpr uint64_t kSaves = 100'000;
  constexpr int64_t kBytes = 100;
  const auto save_of = [](uint64_t place) {
    return SavedStorage{.place = place, .kind = 1, .bytes = kBytes};
  };
  uint64_t last = 1;
  for (uint64_t place = 1; place <= kSaves; ++place)
    last = mixed_bits(last * 31 + place) ^ static_cast<uint64_t>(kBytes);
  KeptStep made{.step = {.saves = {save_of(unmixed_bits(last ^ kBytes) - 31)},
                         .uses = {0},
                         .time_ns = {1, 1, 1},
                         .other_bytes = {1, 1, 1}},
                .away = {0}};
  auto read = read_plans(write_plans({.steps = {made}}, kSettings), kSettings);
  ASSERT_TRUE(read) << read.error().message;
  StepLearner learner({.limits = {.budget_bytes = 1000, .recompute = false}});
  learner.restore(std::move(read->steps));
  learner.begin();
  for (uint64_t place = 1; place <= kSaves; ++place)
    ASSERT_TRUE(learner.save(save_of(place)).observe) << place;
  EXPECT_EQ(learner.expected(), nullptr);
}

TEST(StepLearner, AKeptStepHasItsPlanAtOnceAndAnotherIsLearned) {
  const LearnerSettings settings{
      .limits = {.budget_bytes = 200, .recompute = false, .link = {.gb_per_s = 1}}};
  StepLearner first(settings);
  const auto run = [](StepLearner& learner, uint64_t place) {
    std::vector<char> away;
    bool learned = false;
    learner.begin();
    for (const auto& save : step_of(place).saves) {
      away.push_back(learner.save(save).away);
      learned = learned || learner.learning();
    }
    learner.end({.step = step_of(place), .step_ns = 7000, .peak_bytes = 200}, 0);
    return std::pair(away, learned);
  };
  EXPECT_TRUE(first.kept().empty());
  for (int i = 0; i < 12; ++i) (void)run(first, 1);
  StepLearner second(settings);
  second.restore(first.kept());
  const auto settled = run(first, 1);
  EXPECT_EQ(run(second, 1), settled);
  EXPECT_FALSE(settled.second);
  EXPECT_TRUE(run(second, 100).second);
}

}  // namespace
}  // namespace tierpilot::swap
