// Gangs that may have more ranks begin again wider, from a checkpoint that they are asked for,
// where what that is foretold to gain pays for the restart, and only on what nobody else waits for;
// what they have beyond their own they give back in the same way when others wait for it. Event
// loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/elastic/training_record.h"
#include "model/checkpoint_name.h"
#include "policies/quality/width_choice.h"

namespace tierpilot {

class GangGrowth {
 public:
  struct Hooks {
    std::function<void(uint64_t gang, const std::string& why)> ask_checkpoint;
    std::function<void(Task& gang, uint32_t ranks, const std::string& why)> begin_again;
  };
  GangGrowth(ClusterState& state, Hooks hooks) : state_(state), hooks_(std::move(hooks)) {}

  // What a rank said; rank 0 speaks for its gang.
  void reported(const Task& rank, const JobPoint& report);
  // Several times a second; looks as often as cores are dealt out.
  void tick();
  // Why a gang that may be wider is as wide as it is, for people; empty: it may not, or does not
  // run.
  std::string reason_of(const Task& gang) const;

 private:
  struct Job {
    explicit Job(const TaskSpec& spec)
        : record(std::make_unique<TrainingRecord>(quality::make_default_predictor(),
                                                  spec.training_goal)) {}
    std::unique_ptr<TrainingRecord> record;
    double rank_cores = 0;       // of one rank
    std::string reason;          // see reason_of()
    quality::WidthChoice asked;  // for whose checkpoint it was asked; no ranks: it was not
    uint32_t asked_attempt = 0;
    std::optional<CheckpointName> newest;  // when it was asked
    int64_t asked_ns = 0;
    int64_t waited_for_ns = 0;  // since when others wait for what it was lent; 0: they do not
    int64_t not_before_ns = 0;  // it is looked at again
  };

  void look_at(Task& gang, Job& job);
  // Whether it has been asked for a checkpoint, to give back what it was lent.
  bool gives_back(const Task& gang, Job& job);
  void ask(const Task& gang, Job& job, const quality::WidthChoice& choice);
  std::string why(const Task& gang, const quality::WidthChoice& asked) const;
  // Its checkpoint has come, and outlives its node, or will not come.
  void look_for_checkpoint(Task& gang, Job& job);
  quality::WidthChoice choose(const Task& gang, const Job& job) const;

  ClusterState& state_;
  Hooks hooks_;
  std::map<uint64_t, Job> jobs_;  // by gang
  int64_t next_ns_ = 0;
  int64_t next_gives_back_ns_ = 0;  // one at a time
};

}  // namespace tierpilot
