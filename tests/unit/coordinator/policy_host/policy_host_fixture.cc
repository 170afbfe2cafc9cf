#include "policy_host_fixture.h"

#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/support/fast_folder.h"

namespace tierpilot::testing {
namespace {

using namespace std::chrono_literals;

RewardParts reward_of(double reward) {
  RewardParts parts;
  parts.reward = reward;
  return parts;
}

}  // namespace

PublishedSettings small_published() {
  PublishedSettings settings;
  settings.network.width = 32;
  settings.network.feed_forward = 64;
  settings.network.layers = 1;
  settings.replay_capacity = 64;
  settings.train_start = 16;
  settings.batch = 16;
  settings.batches_per_step = 2;
  settings.copy_interval = 8;
  return settings;
}

DqnSettings small_dqn() {
  DqnSettings settings;
  settings.replay_capacity = 64;
  settings.train_start = 16;
  settings.batch = 16;
  settings.batches_per_experience = 0.5;
  settings.copy_interval = 8;
  settings.epsilon = 0;
  return settings;
}

PlacementModules with(const DqnSettings& dqn, const PublishedSettings& published) {
  auto modules = placement_modules();
  modules.put(dqn_module(dqn));
  modules.put(published_module(published));
  return modules;
}

PlacementModules with_small() {
  return with(small_dqn(), small_published());
}

View three_nodes(double operations) {
  View view;
  view.task = {.operations = operations, .data_bytes = 1 << 20, .writes = false, .units = 1};
  for (uint32_t slot = 0; slot < 3; ++slot)
    view.nodes.push_back({.slot = slot,
                          .candidate = true,
                          .units = 2,
                          .free_fast_bytes = 1 << 20,
                          .fast_budget_bytes = 1 << 20});
  return view;
}

std::shared_ptr<const View> shared(View view) {
  return std::make_shared<const View>(std::move(view));
}

PolicyHostTest::PolicyHostTest()
    : directory_(fast_folder() / ("tierpilot_policy_host_" + std::to_string(::getpid()))) {
  std::filesystem::remove_all(directory_);
}

std::unique_ptr<PolicyHost> PolicyHostTest::start(std::string active) {
  auto host = PolicyHost::start(
      {.modules = with_small(), .seed = 3, .state_dir = directory_, .active = std::move(active)});
  EXPECT_TRUE(host) << host.error().message;
  return std::move(*host);
}

LearnerState PolicyHostTest::after_a_crash(const std::string& policy) {
  const auto left = directory_;
  directory_ += "-left";
  std::filesystem::copy(left, directory_, std::filesystem::copy_options::recursive);
  const auto state = start()->learner(policy);
  std::filesystem::remove_all(directory_);
  directory_ = left;
  return state;
}

PolicyHost::Decided PolicyHostTest::answer(PolicyHost& host, uint64_t id,
                                           std::shared_ptr<const View> view) {
  // Shared: get() may return before set_value() has done with the promise.
  auto promise = std::make_shared<std::promise<PolicyHost::Decided>>();
  host.decide(id, std::move(view),
              [promise](PolicyHost::Decided decided) { promise->set_value(std::move(decided)); });
  return promise->get_future().get();
}

PolicyHost::Decided PolicyHostTest::decide(PolicyHost& host, uint64_t id, const View& view) {
  const auto shared = std::make_shared<const View>(view);
  auto decided = answer(host, id, shared);
  host.took(id, shared, decided.decision.node);
  return decided;
}

void PolicyHostTest::live_through(PolicyHost& host, uint64_t from, uint64_t to) {
  for (uint64_t id = from; id < to; ++id) {
    const auto decided = decide(host, id);
    host.told(id, DataServed{reward_of(decided.decision.node == 0 ? 1.0 : 0.0)});
    host.told(id,
              Finished{decided.decision.node == 0 ? 0.1 : 1.0 + 0.001 * static_cast<double>(id)});
  }
}

bool PolicyHostTest::eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

}  // namespace tierpilot::testing
