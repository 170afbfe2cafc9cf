// Gangs that train, as one that may grow sees them.
#pragma once

#include <gmock/gmock.h>

#include <cmath>

#include "coordinator/core/elastic/gang_growth.h"
#include "gang_fixture.h"

namespace tierpilot::testing {

class GangGrowthTest : public Gangs {
 protected:
  GangGrowthTest() {
    settings_.elastic_period_ms = 1000;
    settings_.elastic_horizon_ms = 60'000;
    settings_.gang_costs = {.checkpoint_h = 1.0 / 3600, .restart_h = 5.0 / 3600};
    again();
  }
  void again() {
    growth_.reset();
    Gangs::again();
    growth_ = std::make_unique<GangGrowth>(
        *state_,
        GangGrowth::Hooks{[this](uint64_t, const std::string& why) { asked_.push_back(why); },
                          [this](Task& gang, uint32_t ranks, const std::string& why) {
                            gangs_->begin_again(gang, ranks, why);
                          }});
  }
  uint64_t submit_growing(uint32_t ranks, uint32_t most) {
    auto wanted = gang(ranks, 1);
    wanted.gang.max_ranks = most;
    return submit({wanted})->first_task;
  }
  // It runs as wide as it was before.
  uint64_t run_as_wide(uint32_t ranks, uint32_t own, uint32_t most) {
    const auto id = submit_growing(own, most);
    state_->gangs.want(id, ranks, "as before");
    run(id);
    EXPECT_EQ(width(id), ranks);
    return id;
  }
  size_t width(uint64_t id) { return state_->tasks.ranks_tried(task(id)).size(); }
  void run(uint64_t id) {
    place();
    for (const uint64_t rank_id : std::vector(state_->tasks.ranks_of(id))) {
      const auto& rank = task(rank_id);
      if (rank.state != TaskState::kAssigned) continue;
      lifecycle_->started(rank.node, {rank_id, rank.attempt}, 1000, {rank.rank->rank % 2});
    }
    flush();
    ASSERT_EQ(task(id).state, TaskState::kRunning);
  }
  // Iterations a second, each of which takes little from a large loss, or from a small one.
  void train(uint64_t id, double half_life, int seconds = 40) {
    for (int i = 0; i < seconds; ++i) {
      clock_.advance_ns(1'100'000'000);
      iteration_ += 10 * width(id);
      JobPoint point{.attempt = task(id).attempt,
                     .at_ms = clock_.wall_ms(),
                     .iteration = iteration_,
                     .loss = {1 + std::exp2(-static_cast<double>(iteration_) / half_life), {}},
                     .measures = {}};
      growth_->reported(rank(id, 0), point);
      growth_->tick();
      flush();
    }
  }
  std::string checkpoint(uint64_t id, uint64_t iteration) {
    return to_string(CheckpointName{id, task(id).attempt, iteration});
  }
  // That so many nodes are to keep, of which this one does.
  void take_checkpoint(uint64_t id, uint64_t iteration, const std::string& node,
                       uint32_t copies = 1) {
    state_->catalog.put(
        {.name = checkpoint(id, iteration), .bytes = 10, .home = node, .replicas = copies});
    copied(id, iteration, node);
  }
  void copied(uint64_t id, uint64_t iteration, const std::string& node) {
    state_->catalog.find(checkpoint(id, iteration))->replicas[node] = {
        .version = 1, .bytes = 10, .in_slow = true, .home = true};
  }
  // Until it was asked for a checkpoint; the iteration that it has come to.
  uint64_t train_until_asked(uint64_t id) {
    for (int i = 0; i < 60 && asked_.empty(); ++i) train(id, 600, 1);
    EXPECT_EQ(asked_.size(), 1U) << growth_->reason_of(task(id));
    return iteration_;
  }

  std::vector<std::string> asked_;
  std::unique_ptr<GangGrowth> growth_;
  uint64_t iteration_ = 0;
};

}  // namespace tierpilot::testing
