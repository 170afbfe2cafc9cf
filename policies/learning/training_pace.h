// How much of its machine the thread that trains all learners may take.
#pragma once

#include "base/config.h"

namespace tierpilot {

struct TrainingPace {
  // Beside tasks that keep every core busy the thread gets about a third of a core at 0, 5 % at 10,
  // and next to nothing at 19.
  int nice = 10;
  // Trains only where a core has nothing else to do (SCHED_IDLE), in place of the nice value, where
  // that is allowed.
  bool when_idle = false;
  // Of one core, at most; a batch is never cut short. What a busy hour leaves is trained on later.
  double cpu_share = 0.1;
  // That are learned from in the long run; of more, a sample is. Remembering one among 128 nodes
  // takes some 50 us.
  double decisions_per_s = 500;
};

// Of [training]. Where it lacks a key that earlier files have in [dqn] (training_nice, ...), that
// one is read, and ConfigReader::hints() says so.
TrainingPace read_training_pace(ConfigReader& reader);

}  // namespace tierpilot
