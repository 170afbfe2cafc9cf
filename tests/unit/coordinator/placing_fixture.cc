#include "placing_fixture.h"

#include "coordinator/store/records.h"
#include "policies/placement/dqn/module.h"

namespace tierpilot::testing {
namespace {

DqnSettings dqn_settings(const std::filesystem::path& file, const ExternalityWeights& others) {
  WeightsFile weights;
  weights.weights.others = others;
  EXPECT_TRUE(save_weights(file, weights));
  DqnSettings settings;
  settings.epsilon = 0;
  settings.weights = file;
  return settings;
}

}  // namespace

void PlacingTest::start_placing(const ExternalityWeights& others,
                                const OversightSettings& settings) {
  auto modules = placement_modules();
  modules.put(dqn_module(dqn_settings(directory_ / "test.weights", others)));
  auto host = PolicyHost::start({.modules = std::move(modules), .state_dir = {}, .active = "dqn"});
  ASSERT_TRUE(host) << host.error().message;
  host_ = std::move(*host);
  oversight_ = std::make_unique<Oversight>(*store_, clock_);
  ASSERT_TRUE(oversight_->begin(settings, {{"dqn", "response"}}));
  dispatcher_ = std::make_unique<Dispatcher>(
      *state_, *host_, *oversight_,
      Dispatcher::Hooks{[this](auto work) { answers_.post(std::move(work)); },
                        [this](int64_t, auto work) { timers_.push_back(std::move(work)); }});
  dispatcher_->set_lifecycle(*lifecycle_);
  a_ = join("a");
  join("b");
}

OversightSettings PlacingTest::without_control(PolicyMode mode) {
  OversightSettings settings;
  settings.mode = mode;
  settings.guard.control_share = 0;
  return settings;
}

void PlacingTest::add_replica(const std::string& dataset, const std::string& node) {
  auto& entry = *state_->catalog.find(dataset);
  entry.replicas[node] = {entry.dataset.version, entry.dataset.bytes, true, true};
}

std::vector<DecisionRecord> PlacingTest::decisions_of(uint64_t id) {
  flush();
  auto decisions = records::decisions(store_->reader(), id);
  EXPECT_TRUE(decisions) << decisions.error().message;
  return decisions.value_or(std::vector<DecisionRecord>{});
}

}  // namespace tierpilot::testing
