// Cores for elastic tasks while they run: every few seconds an allocator deals out, node by node,
// what no other task has; the ranks of a gang get the same each. Event loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/elastic/training_record.h"
#include "policies/quality/even_ranks.h"

namespace tierpilot {

// What a running elastic task has, and why.
struct CoreShare {
  uint64_t task = 0;
  std::string name;
  double units = 0;
  double cores = 0;
  int64_t since_ms = 0;  // wall time
  std::string reason;
  std::optional<double> loss_left;
  // Parts of its largest change of loss that are predicted to go in the next period, and what one
  // unit more would add; nothing while that cannot be foretold.
  std::optional<double> gain, gain_of_one_more;
};

class ElasticCores {
 public:
  ElasticCores(ClusterState& state, std::unique_ptr<quality::Allocator> allocator)
      : state_(state), allocator_(std::move(allocator)) {}

  // After restore(): what runs already.
  void begin();
  void started(const Task& task);
  void reported(const Task& task, const JobPoint& report);
  // What it said to an earlier coordinator: on how many cores, nobody knows any more.
  void reported_before(const Task& task, const JobPoint& report);
  void tick();

  // Of a gang: of the rank with the least. Nothing: it is not elastic, or does not run.
  std::optional<CoreShare> share_of(uint64_t task) const;
  // Of the others on its nodes, those with the most cores first.
  std::vector<CoreShare> shared_with(uint64_t task) const;
  // Orders that changed what a task has.
  uint64_t changes() const { return changes_; }

 private:
  // A running task, which may be one of the ranks of a training.
  struct Job {
    AttemptId attempt;
    uint64_t training = 0;  // the task, or the gang that it is a rank of
    std::string node;
    uint32_t milli_units = 0;  // that its node has given it, as last told
    uint32_t reported = 0;     // when it last reported
    bool told = false;
    CoreShare share;
  };
  // Those of one training on one node.
  using Group = std::vector<std::pair<const Task*, Job*>>;
  // What is dealt out on one node: `shares` has a job for each group.
  struct Deal {
    const NodeRecord* node;
    quality::Cores cores;
    std::vector<Group> groups;
    quality::NodeShares shares;
  };

  TrainingRecord& record_of(uint64_t training, const TaskSpec& spec);
  bool forget_ended();
  std::vector<Deal> groups_by_node();
  quality::JobState describe(const Group& group, double cores_per_unit) const;
  void deal_out(Deal& deal);
  void hand_out(Deal& deal);
  void order(const Task& task, Job& job, uint32_t milli_units);
  void answered(AttemptId attempt, const Result<uint32_t>& milli_units);
  void note(Job& job, uint32_t milli_units);
  CoreShare explain(const quality::JobState& state, const quality::Cores& cores,
                    double cores_per_unit, const TrainingRecord& record) const;
  CoreShare shown(uint64_t task, const Job& job) const;

  ClusterState& state_;
  std::unique_ptr<quality::Allocator> allocator_;
  std::map<uint64_t, Job> jobs_;
  std::map<uint64_t, TrainingRecord> trainings_;  // of a gang also while none of its ranks runs
  int64_t next_ns_ = 0;
  bool changed_ = false;
  uint64_t changes_ = 0;
  // Answers that outlive it find it gone.
  std::shared_ptr<ElasticCores*> self_ = std::make_shared<ElasticCores*>(this);
};

}  // namespace tierpilot
