// Ranks of an elastic gang: the same cores each while they run, as many as lower its loss most.
#include <gmock/gmock.h>

#include "coordinator/core/elastic/elastic_cores.h"
#include "gang_fixture.h"

namespace tierpilot::testing {
namespace {

constexpr uint32_t kUnits = 8;

class ElasticRanks : public Gangs {
 protected:
  ElasticRanks() {
    settings_.elastic_period_ms = 1000;
    again();
    cores_ =
        std::make_unique<ElasticCores>(*state_, std::move(*quality::make_allocator("quality")));
    elastic_started_ = [this](const Task& task) { cores_->started(task); };
    for (const auto* name : {"a", "b"}) {
      auto facts = CoreTest::facts(name);
      facts.units = facts.cpus = kUnits;
      nodes_[name] = std::make_shared<FakeNode>();
      const auto ticket = membership_->join(facts, nodes_[name], {}, {});
      EXPECT_TRUE(ticket);
      tickets_[name] = *ticket;
    }
  }
  // A rank on each of the two nodes.
  uint64_t train_gang(uint32_t least, uint32_t most) {
    auto wanted = gang(2, 3);
    wanted.gang.ranks_per_node_max = 1;
    wanted.units = least;
    wanted.max_units = most;
    const uint64_t id = submit({wanted})->first_task;
    place();
    start_all(id);
    EXPECT_EQ(task(id).state, TaskState::kRunning) << task(id).reason;
    return id;
  }
  uint64_t start(const std::string& node, uint32_t least, uint32_t most) {
    auto one = spec();
    one.units = least;
    one.max_units = most;
    const uint64_t id = submit({one})->first_task;
    lifecycle_->started(node, assign(id, node));
    return id;
  }
  void tick() {
    clock_.advance_ns(1'100'000'000);
    cores_->tick();
  }
  uint32_t milli(uint64_t id) {
    uint32_t last = 0;
    for (const auto& [name, node] : nodes_)
      for (const auto& [attempt, given] : node->shares)
        if (attempt.task == id) last = given;
    return last;
  }
  void say(uint64_t id, uint64_t iteration, double loss) {
    cores_->reported(task(id), {.attempt = task(id).attempt,
                                .at_ms = clock_.wall_ms(),
                                .iteration = iteration,
                                .loss = {loss, ""},
                                .measures = {},
                                .cpu_ns = iteration * 10'000'000,
                                .milli_units = milli(id)});
  }

  std::map<std::string, std::shared_ptr<FakeNode>> nodes_;
  std::unique_ptr<ElasticCores> cores_;
};

TEST_F(ElasticRanks, HaveTheSameEachThoughOneNodeHasMoreRoom) {
  const auto id = train_gang(1, 8);
  tick();
  EXPECT_EQ(milli(rank(id, 0).id), 8000u);
  EXPECT_EQ(milli(rank(id, 1).id), 8000u);
  const auto& crowded = rank(id, 1).node;
  const auto other = start(crowded, 1, 8);
  tick();
  EXPECT_EQ(milli(rank(id, 1).id), 4000u);
  EXPECT_EQ(milli(rank(id, 0).id), 4000u) << "more would only wait for the other";
  EXPECT_EQ(milli(other), 4000u);
  EXPECT_EQ(cores_->share_of(id)->cores, 4) << "of each rank";
  EXPECT_EQ(cores_->shared_with(id).size(), 1u);
}

TEST_F(ElasticRanks, WhatARankCannotUseGoesToOthersOfItsNode) {
  const auto id = train_gang(1, 8);
  const auto here = start(rank(id, 0).node, 1, 8);
  for (int i = 0; i < 3; ++i) start(rank(id, 1).node, 1, 8);
  tick();
  EXPECT_EQ(milli(rank(id, 0).id), 2000u);
  EXPECT_EQ(milli(here), 6000u);
}

TEST_F(ElasticRanks, GetMoreThanAJobWhoseLossStays) {
  const auto id = train_gang(1, 8);
  const auto flat = start(rank(id, 0).node, 1, 8);
  for (uint64_t i = 1; i <= 40; ++i) {
    tick();
    say(rank(id, 0).id, i * 10, 100.0 / (static_cast<double>(i) + 10));
    say(rank(id, 1).id, i * 10, 7);  // rank 0 speaks for all
    say(flat, i * 10, i < 3 ? 3.0 : 2.0);
  }
  tick();
  EXPECT_GT(milli(rank(id, 0).id), 2 * milli(flat));
  EXPECT_EQ(milli(rank(id, 0).id), milli(rank(id, 1).id));
  const auto share = cores_->share_of(id);
  ASSERT_TRUE(share && share->gain);
  EXPECT_GT(*share->gain, 0);
}

TEST_F(ElasticRanks, KeepTheirLeastAndWhatTheyHaveShownWhenTriedAgain) {
  const auto id = train_gang(2, 8);
  tick();
  say(rank(id, 0).id, 10, 2);
  say(rank(id, 0).id, 20, 1);
  end(id, 1, failure(1));
  end_cancelled(id);
  tick();
  EXPECT_FALSE(cores_->share_of(id)) << "none of its ranks runs";
  place();
  start_all(id);
  ASSERT_EQ(task(id).state, TaskState::kRunning) << task(id).reason;
  tick();
  const auto share = cores_->share_of(id);
  ASSERT_TRUE(share);
  EXPECT_THAT(share->reason, ::testing::HasSubstr("2 times")) << "it has not forgotten";
}

TEST_F(ElasticRanks, AreForgottenWithTheirGang) {
  const auto id = train_gang(1, 8);
  tick();
  end(id, 0, success());
  end(id, 1, success());
  flush();
  tick();
  EXPECT_FALSE(cores_->share_of(id));
  tick();
  const size_t orders = nodes_["a"]->shares.size();
  const auto other = start("a", 1, 8);
  tick();
  EXPECT_EQ(nodes_["a"]->shares.size(), orders + 1);
  EXPECT_EQ(milli(other), 8000u);
}

TEST_F(ElasticRanks, ANodeThatIsAwayKeepsTheOthersAtItsPace) {
  const auto id = train_gang(1, 8);
  tick();
  const auto away = rank(id, 1).node;
  const auto other = start(away, 1, 8);
  tick();
  ASSERT_EQ(milli(rank(id, 0).id), 4000u);
  membership_->disconnected(tickets_[away]);
  tick();
  EXPECT_EQ(milli(rank(id, 0).id), 4000u);
  EXPECT_TRUE(cores_->share_of(other));
}

}  // namespace
}  // namespace tierpilot::testing
