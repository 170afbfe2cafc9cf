// What every learner is: it is told what happened to decisions, whoever took them, and trains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policies/interface/outcome.h"
#include "policies/interface/values.h"

namespace tierpilot {

struct LearnerCounters {
  uint64_t decisions = 0;
  uint64_t experiences = 0;  // complete, without duplicates
  uint64_t pending = 0;
  uint64_t replay_size = 0;
  uint64_t replay_capacity = 0;
  uint64_t batches = 0;
  uint64_t training_steps = 0;
  uint64_t weights_version = 0;
  double loss = 0;  // of the last 50 or so batches; means nothing before the first one
};

// Belongs to one thread. Driven alike by the coordinator's training thread, the simulator and
// tests: facts as they come in, then `while (ready()) train_batch()`, then copy_weights_if_due().
class Learner {
 public:
  virtual ~Learner() = default;

  // Makes what costs much, before the first decision of the policy that it teaches, or of another
  // one that it is told of: learners that are not used take nothing. Again it does nothing.
  // std::runtime_error: what it needs is not installed.
  virtual void begin() {}
  // `id` was sent to view.nodes[node]; said again for an id when the action changed.
  virtual void decided(uint64_t id, const View& view, size_t node) = 0;
  // What became of it; an unknown id is ignored.
  virtual void told(uint64_t id, const Outcome& outcome) = 0;

  // There is something to train on.
  virtual bool ready() const = 0;
  virtual void train_batch() = 0;
  // Hands the trained weights to the policy that decides: at once, or when enough decisions were
  // taken since the last time. Nothing while they are the same as those.
  virtual void copy_weights() = 0;
  virtual void copy_weights_if_due() = 0;

  virtual LearnerCounters counters() const = 0;
  // Everything that must not be lost over a restart.
  virtual std::string save() const = 0;
  // Takes over what save() gave. kInvalid, and nothing changes, when it is damaged or of another
  // network.
  virtual Status restore(std::string_view saved) = 0;
  // The weights alone, being trained, with what belongs to them.
  virtual std::string save_weights() const = 0;
  // Goes on from what save_weights() gave, under a new version, handed over at once. Experiences
  // are forgotten, so that they do not lead to where it came from. kInvalid as restore().
  virtual Status restore_weights(std::string_view saved) = 0;
};

}  // namespace tierpilot
