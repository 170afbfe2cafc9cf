// How far the gangs of a run are: of their tries, how many ranks have begun and how many are over.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

class Gangs {
 public:
  explicit Gangs(const Workload& workload) : workload_(workload), tries_(workload.gangs.size()) {}

  const Gang* of(uint32_t task) const {
    const uint32_t gang = workload_.tasks[task].gang;
    return gang == kNoGang ? nullptr : &workload_.gangs[gang];
  }
  // Stands for its gang in the queue and in what is counted; so does a task that is in none.
  bool leads(uint32_t task) const {
    const Gang* gang = of(task);
    return !gang || gang->first == task;
  }

  void begin(uint32_t task) { of_try(task) = {}; }
  // True: it was the last of all ranks.
  bool gathered(uint32_t task) { return ++of_try(task).gathered == of(task)->ranks; }
  bool over(uint32_t task) { return ++of_try(task).over == of(task)->ranks; }

 private:
  struct Try {
    uint32_t gathered = 0, over = 0;
  };
  Try& of_try(uint32_t task) { return tries_[workload_.tasks[task].gang]; }

  const Workload& workload_;
  std::vector<Try> tries_;  // by gang
};

// Calls each(task) with all of them; with the task itself where it is in no gang.
template <class Each>
void for_each_rank(const Gang* gang, uint32_t task, Each each) {
  if (!gang) return each(task);
  for (uint32_t rank = 0; rank < gang->ranks; ++rank) each(gang->first + rank);
}

}  // namespace tierpilot::sim
