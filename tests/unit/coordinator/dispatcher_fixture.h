// A coordinator's core whose dispatcher asks the dqn, and whose timers go off when the test says
// so.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/dispatcher.h"
#include "core_fixture.h"
#include "policies/placement/published/module.h"

namespace tierpilot::testing {

class DispatcherTest : public CoreTest {
 protected:
  DispatcherTest() {
    PublishedSettings settings;
    settings.network.width = 16;
    settings.network.layers = 1;
    settings.network.feed_forward = 16;
    auto modules = placement_modules();
    modules.put(published_module(settings));
    auto host =
        PolicyHost::start({.modules = std::move(modules), .state_dir = {}, .active = "dqn"});
    if (!host) throw std::runtime_error(host.error().message);
    host_ = std::move(*host);
    oversight_ = std::make_unique<Oversight>(*store_, clock_);
    start_dispatcher();
  }
  // The decision thread posts into this object.
  ~DispatcherTest() override { host_.reset(); }

  // As after a restart: it knows of no decision before.
  void start_dispatcher() {
    dispatcher_ = std::make_unique<Dispatcher>(
        *state_, *host_, *oversight_,
        Dispatcher::Hooks{[this](auto work) { posts_.post(std::move(work)); },
                          [this](int64_t us, auto work) {
                            wait_us_ = static_cast<double>(us);
                            deadlines_.push_back(std::move(work));
                          }});
    dispatcher_->set_lifecycle(*lifecycle_);
  }

  TaskState state_of(uint64_t id) { return state_->tasks.find(id)->state; }
  bool run_until_assigned(uint64_t id) {
    return posts_.run_until([&] { return state_of(id) == TaskState::kAssigned; });
  }
  // The timers that are set go off; what they set is left.
  void ring() {
    for (const auto& timer : std::exchange(deadlines_, {})) timer();
  }
  void pass_deadlines() {
    clock_.advance_ns(settings_.decision_deadline_us * 1000);
    ring();
  }
  // The policy's answer to what was asked before has been handled.
  void let_the_policy_answer() {
    bool answered = false;
    View view;
    view.nodes.resize(1);
    view.nodes[0].candidate = true;
    // The dispatcher counts its own up from 1.
    host_->decide(UINT64_MAX, std::make_shared<const View>(view),
                  [&](auto) { posts_.post([&] { answered = true; }); });
    ASSERT_TRUE(posts_.run_until([&] { return answered; }));
  }

  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::vector<std::function<void()>> deadlines_;
  double wait_us_ = 0;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace tierpilot::testing
