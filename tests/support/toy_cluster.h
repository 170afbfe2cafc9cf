// A small stand-in for a cluster, in virtual time: nodes with a fast budget (LRU) over an unlimited
// slow tier, datasets of skewed popularity, and tasks that wait for a node with room, then for a
// unit of it, have their data served (hit, promotion, fetch, evictions first) and compute. Rewards
// are those of the product. A copy lives through the same future, whatever is placed where.
#pragma once

#include <cstdint>
#include <list>
#include <queue>
#include <random>
#include <vector>

#include "policies/interface/values.h"
#include "policies/placement/reward.h"

namespace tierpilot {

struct ToySettings {
  uint32_t nodes = 3;
  uint32_t units_per_node = 2;
  uint64_t fast_budget_bytes = 256ULL << 20;
  uint32_t datasets = 40;
  uint64_t smallest_dataset_bytes = 8ULL << 20;
  uint64_t largest_dataset_bytes = 64ULL << 20;
  double popularity_exponent = 1.0;  // Zipf
  double second_dataset_share = 0.3;
  double write_share = 0.2;
  double offered_load = 0.3;  // mean compute time of a task over mean time between tasks and units
  double mean_compute_s = 0.05;
  double hit_bytes_per_s = 8e9;
  double promote_bytes_per_s = 1.5e9;
  double fetch_bytes_per_s = 0.6e9;
  double evict_bytes_per_s = 1.2e9;
  double noise_sigma = 0.2;  // of the logarithm of every served time
  double speed_spread = 0;   // the last node is so much faster than the first, around 2e9 a second
  uint32_t backlog_units = 1000;  // that a node may be given beyond those it has
};

class ToyCluster {
 public:
  struct Outcome {
    uint64_t id = 0;
    RewardParts reward;
    double response_s = 0;  // until the data was served
  };
  struct End {
    uint64_t id = 0;
    double since_decision_s = 0;
    double since_arrival_s = 0;
  };

  ToyCluster(const ToySettings& settings, uint64_t seed);

  // Goes on to the moment when the next task can be placed and shows it. place() must follow.
  const View& arrive();
  const View& view() const { return view_; }
  // Sends the task that arrived last to a node; its id counts from 0.
  uint64_t place(size_t node);
  // What was measured since the last call.
  std::vector<Outcome> take_outcomes();
  std::vector<End> take_ends();
  // What the task that was placed last will take from its arrival to its end.
  double last_response_s() const { return last_response_s_; }
  double now_s() const { return now_s_; }

 private:
  struct Dataset {
    uint64_t bytes = 0;
    double popularity = 0;
  };
  struct Node {
    std::list<uint32_t> fast;       // most recently used first
    std::vector<bool> slow;         // by dataset
    std::vector<double> free_at_s;  // by unit
    uint64_t fast_bytes = 0;
    double transfers_end_s = 0;
  };
  struct Job {
    uint32_t node = 0;
    double begin_s = 0;
    double end_s = 0;
    double operations = 0;
    uint64_t fetch_bytes = 0;
    double served_s = 0;
  };

  bool has_room(uint32_t node) const;
  void wait_for_room();
  void draw_task();
  void look_around();
  double operations_per_s(uint32_t node) const;
  double serve_s(Node& node, uint32_t dataset, uint64_t& evicted_bytes);
  uint64_t make_room(Node& node, uint64_t bytes);
  void drop_other_replicas(uint32_t owner, uint32_t dataset);
  bool in_fast(const Node& node, uint32_t dataset) const;
  double busy_share() const;
  double noise();

  ToySettings settings_;
  std::mt19937_64 generator_;
  std::vector<Dataset> datasets_;
  std::vector<Node> nodes_;
  std::vector<Job> jobs_;
  std::vector<std::pair<double, Outcome>> served_;  // by time
  std::vector<std::pair<double, End>> ends_;
  double now_s_ = 0;      // of the last decision
  double arrival_s_ = 0;  // of the task that is to be placed
  double last_response_s_ = 0;
  uint64_t next_id_ = 0;
  View view_;
  std::vector<uint32_t> wanted_;
  double compute_s_ = 0;
};

}  // namespace tierpilot
