// A coordinator's core with gangs on nodes of two units each.
#pragma once

#include "coordinator/core/dispatch/dispatcher.h"
#include "core_fixture.h"

namespace tierpilot::testing {

// Nodes have two units each.
class Gangs : public CoreTest {
 protected:
  Gangs() {
    auto host = PolicyHost::start({.state_dir = {}, .active = "least-loaded"});
    if (!host) throw std::runtime_error(host.error().message);
    host_ = std::move(*host);
    settings_.backlog_units = 0;
    again();
  }
  ~Gangs() override { host_.reset(); }

  // As after a restart of the coordinator.
  void again() {
    dispatcher_.reset();
    restart();
    oversight_ = std::make_unique<Oversight>(*store_, clock_);
    dispatcher_ = std::make_unique<Dispatcher>(
        *state_, *host_, *oversight_,
        Dispatcher::Hooks{[this](auto work) { posts_.post(std::move(work)); },
                          [](int64_t, auto) {}});
    dispatcher_->set_lifecycle(*lifecycle_);
    dispatcher_->set_gangs(*gangs_);
  }
  void place() {
    dispatcher_->pump();
    flush();
    flush();
  }
  void pass(int64_t ms) {
    clock_.advance_ns(ms * 1'000'000);
    while (!later_.empty() && later_.begin()->first <= clock_.boot_ns())
      later_.extract(later_.begin()).mapped()();
  }
  static TaskSpec gang(uint32_t ranks, uint32_t restarts = 0) {
    auto gang = spec("train");
    gang.gang.ranks = ranks;
    gang.gang.max_restarts = restarts;
    return gang;
  }
  uint64_t submit_gang(uint32_t ranks, uint32_t restarts = 0) {
    return submit({gang(ranks, restarts)})->first_task;
  }
  const Task& task(uint64_t id) { return *state_->tasks.find(id); }
  const Task& rank(uint64_t gang, uint32_t number) {
    return task(state_->tasks.ranks_of(gang)[number]);
  }
  AttemptId attempt(uint64_t gang, uint32_t number) {
    return {rank(gang, number).id, rank(gang, number).attempt};
  }
  void start_all(uint64_t gang) {
    for (const uint64_t id : state_->tasks.ranks_of(gang)) {
      const auto& rank = task(id);
      lifecycle_->started(rank.node, {id, rank.attempt}, 1000, {rank.rank->rank % 2});
    }
    flush();
  }
  void end(uint64_t gang, uint32_t number, TaskExit how) {
    const auto id = attempt(gang, number);
    EXPECT_TRUE(exit(rank(gang, number).node, id, std::move(how)));
  }
  // Those that were asked to end do so.
  void end_cancelled(uint64_t gang) {
    for (const uint64_t id : std::vector(state_->tasks.ranks_of(gang))) {
      const auto* rank = state_->tasks.find(id);
      if (!rank || !rank->cancel_asked || rank->state == TaskState::kWaiting) continue;
      TaskExit cancelled;
      cancelled.how = TaskEnd::kCancelled;
      EXPECT_TRUE(exit(rank->node, {id, rank->attempt}, cancelled));
    }
    flush();
  }
  static TaskExit killed(int signal) {
    TaskExit exit;
    exit.how = TaskEnd::kSignalled;
    exit.code = signal;
    return exit;
  }

  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace tierpilot::testing
