// Cores for elastic tasks while they run: every few seconds an allocator deals out, node by node,
// what no other task has. Event loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/elastic/training_record.h"

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

  // Nothing: it is not elastic, or does not run.
  std::optional<CoreShare> share_of(uint64_t task) const;
  // Of the others on its node, those with the most cores first.
  std::vector<CoreShare> shared_with(uint64_t task) const;
  // Orders that changed what a task has.
  uint64_t changes() const { return changes_; }

 private:
  struct Job {
    Job(std::unique_ptr<quality::Predictor> predictor, const TrainingGoal& goal)
        : record(std::move(predictor), goal) {}
    AttemptId attempt;
    std::string node;
    TrainingRecord record;
    uint32_t milli_units = 0;  // that its node has given it, as last told
    uint32_t reported = 0;     // when it last reported
    bool told = false;
    CoreShare share;
  };
  using Jobs = std::vector<std::pair<const Task*, Job*>>;

  bool forget_ended();
  void deal_out(const NodeRecord& node, const Jobs& jobs);
  void order(const Task& task, Job& job, uint32_t milli_units);
  void answered(AttemptId attempt, const Result<uint32_t>& milli_units);
  void explain(const quality::JobState& state, const quality::Cores& cores, double cores_per_unit,
               Job& job) const;

  ClusterState& state_;
  std::unique_ptr<quality::Allocator> allocator_;
  std::map<uint64_t, Job> jobs_;
  int64_t next_ns_ = 0;
  bool changed_ = false;
  uint64_t changes_ = 0;
  // Answers that outlive it find it gone.
  std::shared_ptr<ElasticCores*> self_ = std::make_shared<ElasticCores*>(this);
};

}  // namespace tierpilot
