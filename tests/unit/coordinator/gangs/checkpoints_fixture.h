// A gang with checkpoints.
#pragma once

#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/gangs/checkpoints.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {

// A gang of two ranks that runs on `n` and `m`.
class CheckpointsTest : public CoreTest {
 protected:
  void run_gang() {
    n = join("n");
    m = join("m");
    auto gang = spec("train");
    gang.gang.ranks = 2;
    gang.gang.max_restarts = 5;
    id = submit({gang})->first_task;
    place();
  }
  void place() {
    GangPlan plan;
    plan.ranks = {{"n", 0, 1, 0, {0}, {}}, {"m", 0, 1, 1, {0}, {}}};
    gangs_->place(*state_->tasks.find(id), plan);
    flush();
    for (const uint64_t rank : state_->tasks.ranks_of(id)) {
      const auto& task = *state_->tasks.find(rank);
      lifecycle_->started(task.node, {rank, task.attempt}, 1000, {0});
    }
    flush();
  }
  Checkpoints& checkpoints() {
    if (!checkpoints_) {
      checkpoints_ = std::make_unique<Checkpoints>(*state_, *datasets_);
      EXPECT_TRUE(checkpoints_->begin());
    }
    return *checkpoints_;
  }
  CheckpointName name(uint64_t iteration) { return {id, 1, iteration}; }
  std::string dataset(uint64_t iteration) { return to_string(name(iteration)); }
  static ReplicaState replica(bool there = true) {
    return {1, 4096, false, there, there, {0, 9}, false};
  }
  // As its node reports it.
  void taken(const std::string& node, uint64_t iteration) {
    tells(node, iteration, true);
    checkpoints().found(node, dataset(iteration), replica());
    flush();
  }
  void tells(const std::string& node, uint64_t iteration, bool has) {
    membership_->replica_changed(node, dataset(iteration), replica(has));
  }
  void tick() {
    clock_.advance_ns(1'000'000'001);
    checkpoints().tick();
    flush();
  }
  std::vector<uint64_t> kept() {
    std::vector<uint64_t> iterations;
    for (const auto& shown : checkpoints().of(id)) iterations.push_back(shown.name.iteration);
    return iterations;
  }
  template <class Advice>
  std::vector<Advice> told() {
    std::vector<Advice> all;
    for (const auto& [attempt, advice] : n->told)
      if (const auto* one = std::get_if<Advice>(&advice)) all.push_back(*one);
    return all;
  }
  AttemptId rank(uint32_t number) { return {state_->tasks.ranks_of(id)[number], 1}; }
  void end_gang() {
    for (uint32_t number : {0, 1})
      EXPECT_TRUE(exit(number == 0 ? "n" : "m", rank(number), success()));
    flush();
  }

  uint64_t id = 0;
  std::shared_ptr<FakeNode> n, m;
  std::unique_ptr<Checkpoints> checkpoints_;
};

}  // namespace tierpilot::testing
