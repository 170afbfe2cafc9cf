// Jobs that save checkpoints, and what a daemon's job channel makes of that, without files: a
// job's work is iterations, and a try goes on from the one that its checkpoint was saved with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "coordinator/core/nodes/node_link.h"
#include "daemon/agent/node/model.h"
#include "tests/dst/judge/judge.h"
#include "tests/dst/loop.h"
#include "tests/dst/pool.h"
#include "tests/dst/random.h"
#include "tests/dst/warden.h"

namespace tierpilot::dst {

class Savers {
 public:
  struct Surroundings {
    Loop& loop;
    Judge& judge;
    Random& random;
    LifePtr life;  // the daemon's
    Pool& pool;
    const Warden& warden;
    std::function<void(agent::EventBody)> report;
  };
  explicit Savers(Surroundings surroundings) : at_(std::move(surroundings)) {}

  // Its process runs.
  void began(const agent::Assignment& assignment);
  // It was asked to end: some save first.
  void asked_to_end(AttemptId attempt);
  // What the coordinator has its job channel tell it.
  void tell(AttemptId attempt, const JobAdvice& advice);
  bool takes_checkpoints(AttemptId attempt) const { return jobs_.contains(attempt); }

 private:
  struct Job {
    uint64_t job = 0;  // of a rank, its gang
    int64_t every_ns = 0;
    uint64_t last = 0;  // that was saved
    bool is_saving = false;
  };
  void save_later(AttemptId attempt, int64_t from_ns, int64_t to_ns);
  void save(AttemptId attempt);
  void saved(AttemptId attempt, const CheckpointName& name, int64_t began_ns,
             const Result<ReplicaChange>& made);
  // Nothing: it does not run any more.
  std::optional<uint64_t> iteration_of(AttemptId attempt) const;

  Surroundings at_;
  std::map<AttemptId, Job> jobs_;
};

}  // namespace tierpilot::dst
