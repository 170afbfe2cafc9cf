// Who gets how many cores in the next period. Pure: the same objects decide in a coordinator and in
// the simulator.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "policies/interface/module.h"
#include "policies/quality/predictor.h"
#include "policies/quality/throughput.h"

namespace tierpilot::quality {

// A job as an allocator sees it, at the beginning of a period.
struct JobState {
  uint64_t id = 0;  // the same in every period; 0: nobody looks back at it
  double arrival_s = 0;
  double weight = 1;
  double min_cores = 0;  // never less while there is room
  double max_cores = 1;
  double cores = 0;  // in the last period
  // Processes that share its cores here evenly, of a job that may have others elsewhere: its pace
  // is that of one of them. `one_core_s` and `throughput` are of one, too.
  double ranks_here = 1;
  double iterations = 0;      // done
  double one_core_s = 0;      // of an iteration on one core; 0: not known yet
  double largest_change = 0;  // of its loss so far; 0: it has shown none
  double newest_loss = 0;     // as reported; once `reports` is above 0
  uint64_t reports = 0;       // usable ones
  const Throughput* throughput = nullptr;
  const Predictor* predictor = nullptr;  // null: nothing can be foretold
  double deadline_s = 0;  // of the clock that arrivals are of, for `deadline_loss`; 0: none
  double deadline_loss = 0;
};

struct Cores {
  double total = 0;
  double unit = 1;      // the smallest part that is given out
  double period_s = 0;  // until the next decision
  double now_s = 0;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Cores of each job, in order, from 0 to its max_cores; together at most cores.total.
  virtual std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) = 0;
  // Why it does not do what it is named for, for people; empty: it does.
  virtual std::string hindrance() const { return {}; }
  // What decides about a job's cores, for people; `family`: of the curves that its predictor
  // believes in, as it says. Empty: the allocator's name says all.
  virtual std::string reason(std::string_view family) const {
    (void)family;
    return {};
  }
};

// Made of nothing. The clairvoyant is "quality" with predictors that know what comes.
using AllocatorModule = PolicyModule<Allocator, std::monostate>;
const ModuleList<AllocatorModule>& allocators();
// "guarded:" before any of them puts it under the guard of policies/quality/guarded_allocator.h.
// kNotFound names those that there are.
Result<std::unique_ptr<Allocator>> make_allocator(std::string_view name);

// On `cores`, beside one core for each of its ranks here.
double speed_on(const JobState& job, double cores);
// Iterations that a job would do in `seconds` on `cores`; 0 while its cost is not known.
double iterations_in(const JobState& job, double seconds, double cores);

}  // namespace tierpilot::quality
