#include <gtest/gtest.h>

#include <set>

#include "policies/sim/gang/ac_training.h"
#include "policies/sim/gang/learned_placers.h"

namespace tierpilot::gang {
namespace {

// Nodes of so many units each; about half of all free, at least so many.
PlacementState cluster(const std::vector<uint32_t>& nodes, uint32_t least_free,
                       SeededRandom& random) {
  PlacementState state;
  state.units_per_node = *std::max_element(nodes.begin(), nodes.end());
  for (uint32_t node = 0; node < nodes.size(); ++node)
    for (uint32_t i = 0; i < nodes[node]; ++i) {
      state.node.push_back(node);
      state.free.push_back(state.free.size() < least_free || random.chance(0.5));
      state.per_h.push_back(random.log_uniform(1e-5, 1e-1));
    }
  return state;
}

std::shared_ptr<AcNet> disturbed(uint64_t seed) {
  auto net = std::make_shared<AcNet>(seed);
  SeededRandom random(seed);
  for (float& weight : net->actor.parameters()) weight += static_cast<float>(random.unit() - 0.5);
  return net;
}

TEST(Ac, WithoutTrainingItTakesTheLeastExpectedHours) {
  SeededRandom random(1);
  const auto ac = make_ac_placer(std::make_shared<AcNet>(1));
  const auto greedy = make_placer("expected-time", 1);
  for (int round = 0; round < 50; ++round) {
    const auto state = cluster(std::vector<uint32_t>(8, 8), 16, random);
    const Job job{.units = 1 + static_cast<uint32_t>(random.below(16)), .work_h = 20};
    EXPECT_LE(expected_hours(state, job, 20, ac->place(state, job)),
              expected_hours(state, job, 20, (*greedy)->place(state, job)) * (1 + 1e-9));
  }
}

TEST(Ac, AnyClusterAndAnyWeightsGiveFreeUnitsOnce) {
  SeededRandom random(2);
  const std::vector<std::vector<uint32_t>> clusters{
      {1}, {4, 4}, {8, 3, 1, 5}, std::vector<uint32_t>(128, 8)};
  for (const auto& nodes : clusters)
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const auto state = cluster(nodes, 1, random);
      const auto free = static_cast<uint32_t>(free_units(state).size());
      for (const uint32_t units : {1U, (free + 1) / 2, free}) {
        const auto chosen =
            make_ac_placer(disturbed(seed))->place(state, {.units = units, .work_h = 5});
        EXPECT_EQ(std::set<uint32_t>(chosen.begin(), chosen.end()).size(), units);
        for (const uint32_t unit : chosen) EXPECT_TRUE(state.free[unit]);
      }
    }
}

TEST(Ac, NumbersThatNobodyExpectsGiveFiniteScores) {
  SeededRandom random(3);
  auto state = cluster({4, 4}, 8, random);
  state.per_h = {0, 1e300, 1e-300, 1, 0, 0, 1e9, 1e-9};
  state.costs = {.checkpoint_h = 0, .restart_h = 0, .repair_h = 0};
  for (const double work_h : {0.0, 1e-9, 1e6}) {
    const auto input = ac_input(state, {.units = 2, .work_h = work_h});
    for (const auto& candidate : input.candidates)
      for (const auto& seen : candidate.seen)
        for (const float value : seen) EXPECT_TRUE(std::isfinite(value));
  }
}

// At the true rates.
double expected_unit_h(const PlacementState& state, const Job& job, const Units& units,
                       const UnitFailures& failures) {
  return expected_cost_at(state, job, units,
                          [&](uint32_t unit) { return failures.rate(unit, state.now_h); })
      .unit_h;
}

// Mean over scenes that no training drew.
double cost_of(const std::shared_ptr<const AcNet>& net) {
  class Measure : public Placer {
   public:
    Measure(std::unique_ptr<Placer> inner, const GangScene& scene)
        : inner_(std::move(inner)), scene_(scene) {}
    Units place(const PlacementState& state, const Job& job) override {
      auto units = inner_->place(state, job);
      cost += expected_unit_h(state, job, units, scene_.failures);
      return units;
    }
    double cost = 0;

   private:
    std::unique_ptr<Placer> inner_;
    const GangScene& scene_;
  };
  double sum = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto scene = training_scene(derived_seed(seed, "held out"), {});
    if (scene.units > 16) continue;
    Measure measure(make_ac_placer(net), scene);
    simulate(scene, measure);
    sum += measure.cost;
  }
  return sum;
}

GangScene small_scene(uint64_t seed) {
  for (;; seed = derived_seed(seed, "another"))
    if (auto scene = training_scene(seed, {}); scene.units <= 16) return scene;
}

TEST(AcTraining, LowersWhatPlacementsCostElsewhere) {
  const AcTrainingSettings settings{.rounds = 25, .rate = 3e-3F};
  const auto net = std::make_shared<AcNet>(train_ac(settings, small_scene, [](const auto&) {}));
  EXPECT_LT(cost_of(net), cost_of(std::make_shared<AcNet>(settings.seed)));
  ::testing::Test::RecordProperty("cost", std::to_string(cost_of(net)));
}

TEST(AcTraining, TheSameSeedGivesTheSameWeights) {
  const AcTrainingSettings settings{.rounds = 2, .scenes = 2};
  const auto text = [&] {
    return ac_weights_text(train_ac(settings, small_scene, [](const auto&) {}), "test");
  };
  const auto first = text();
  EXPECT_EQ(first, text());
  EXPECT_NE(first, ac_weights_text(AcNet(settings.seed), "test"));
}

TEST(AcTraining, ACostCountsSlowLinksFailuresAndTheRepair) {
  PlacementState state;
  state.units_per_node = 2;
  state.node = {0, 0, 1, 1};
  state.free.assign(4, true);
  state.per_h.assign(4, 1e-3);
  UnitFailures failures;
  failures.per_h_before = failures.per_h_after = {0, 0, 0, 1e-2};
  const Job job{.units = 2, .work_h = 10, .network = 0};
  const auto together = expected_unit_h(state, job, {0, 1}, failures);
  const auto apart = expected_unit_h(state, job, {0, 2}, failures);
  const auto failing = expected_unit_h(state, job, {2, 3}, failures);
  EXPECT_GT(apart, together);
  EXPECT_GT(failing, together);
  state.costs.repair_h += 10;
  const auto longer = expected_unit_h(state, job, {2, 3}, failures);
  EXPECT_NEAR(longer - failing, 10 * -std::expm1(-1e-2 * 10), 0.1);
}

TEST(AcWeights, AreReadAsTheyWereWritten) {
  const auto net = disturbed(4);
  const auto read = read_ac_weights(ac_weights_text(*net, "test"), "x");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(ac_weights_text(*read, "test"), ac_weights_text(*net, "test"));
}

TEST(AcWeights, AnythingElseIsRefusedWithItsLine) {
  const auto text = ac_weights_text(AcNet(1), "test");
  const auto second = text.find('\n') + 1;
  const auto broken = [&](const std::string& word) {
    return text.substr(0, second) + word + text.substr(text.find('\n', second));
  };
  for (const auto& bad : {std::string(), std::string("TPDQNWT1\n"), broken("nan"), broken("x"),
                          text.substr(0, text.size() / 2), text + "1\n"})
    EXPECT_FALSE(read_ac_weights(bad, "w").has_value());
  EXPECT_NE(read_ac_weights(broken("x"), "w").error().message.find("w:2"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::gang
