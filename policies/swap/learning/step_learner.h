// Learns a program's training steps while they run: knows a step again by what it saves, has a
// choice for it from the second time on, and mends the choice by what steps really take.
//
// A choice decides where bytes lie, never what they are: a step that goes on otherwise than the
// known one is only slower.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "policies/swap/learning/choice.h"
#include "policies/swap/learning/kept_plans.h"
#include "policies/swap/learning/published_q.h"

namespace tierpilot::swap {

struct LearnerSettings {
  std::string rule = "swap";
  Limits limits{};
  // How much longer than the best an exploring step may be, by its replay.
  double explore_bound = 0.1;
  int most_explorations = 12;  // of each step
};

struct Advice {
  bool away = true;
  bool observe = true;  // measure what the device holds at this event
};

struct StepEnd {
  ObservedStep step{};  // other_bytes: empty when it was not measured all the way
  bool timed = true;    // whether its times are of computing, and not of telling a device to
  int64_t step_ns = 0;  // with stalls
  int64_t stall_ns = 0;
  int64_t peak_bytes = 0;         // of the device; 0: not known
  int64_t passes_peak_bytes = 0;  // until the last use; 0: not known
  // From the first save to the last use; 0: not known. What follows is no plan's: updates, and
  // waits for data and for states of optimisers.
  int64_t passes_ns = 0;
  int64_t passes_stall_ns = 0;
  int64_t others_ns = 0;  // of that, waits for a processor that other programs had
  int64_t whole_ns() const { return passes_ns > 0 ? passes_ns : step_ns; }
  // What the plan really cost.
  int64_t cost_ns() const { return whole_ns() - others_ns; }
  // What it waited of that.
  int64_t waited_ns() const { return passes_ns > 0 ? passes_stall_ns : stall_ns; }
};

class StepLearner {
 public:
  explicit StepLearner(LearnerSettings settings) : settings_(std::move(settings)) {}

  // What copies have been found to take.
  void set_link(const Link& link) { settings_.limits.link = link; }
  // Less than was thought: steps are planned anew.
  void set_budget(int64_t bytes);
  // A new step begins.
  void begin();
  // The step's next save.
  Advice save(const SavedStorage& storage);
  // The known step that this one is like so far; nullptr: none.
  const ObservedStep* expected() const;
  // The step is over. Bytes by which the device holds more than at the begin of the step (weights'
  // gradients, states of an optimiser) are added to what is expected of the next.
  void end(StepEnd seen, int64_t growth_bytes);
  // For another's sake, all of the next step is to be measured.
  void look_at_next() { looks_at_next_ = true; }
  // So many bytes more or less lie beside all steps from now on: they are planned anew, and looked
  // at closely again.
  void look_again(int64_t more_bytes);
  // What the step that was seen last would cost by the best plan, in ns, if the device held so many
  // bytes more beside it; nothing where none fits or the rule plans nothing.
  std::optional<double> foretold_ns(int64_t more_bytes) const;
  // The device had no room in this step: everything leaves when it is run again. If its plan was
  // only tried (true), the best one that had room comes back then, and nothing else is tried any
  // more; else it is planned anew, a few times; after that everything leaves in it for good.
  bool failed();

  // The best that is known of each step, for the next run, also that memory did not suffice; and
  // what another run knew, before the first step of this one. A kept step has a plan at once and is
  // measured no more closely than any.
  std::vector<KeptStep> kept() const;
  void restore(std::vector<KeptStep> kept);
  // Whether the step that runs is unknown, looked at closely or tries something.
  bool learning() const;

  size_t known_steps() const { return steps_.size(); }
  // How much the device would need at least for the step that was seen last.
  int64_t least_bytes() const { return least_bytes_; }
  bool exploring() const { return current_ != kUnknown && steps_[current_].exploring; }

 private:
  static constexpr size_t kUnknown = static_cast<size_t>(-1);
  struct Attempt {
    std::vector<char> away{};
    int64_t foretold_ns = 0;
    int runs = 0;
    int64_t least_ns = 0;  // the cheapest of its steps
  };
  struct Known {
    ObservedStep step{};
    std::vector<uint64_t> prefixes{};
    Attempt now{}, best{};
    int64_t margin_bytes = 0;  // kept free of the budget, as steps took more than was foretold
    int runs = 0, explorations = 0, failures = 0;
    uint64_t seen_at = 0;  // in the order of steps
    int overs = 0;         // of the last runs, that took too much
    size_t next_kind = 0, widened = 0;
    bool exploring = false, observe = true, failed = false;
    bool failed_trying = false;             // another plan than the best
    bool restored = false;                  // and not run since
    bool outdated = false;                  // its plan is for another budget
    std::vector<uint32_t> other_uses{};     // of the last run, if not as expected
    std::optional<PublishedQ> published{};  // of the rule q-published
  };

  void add(StepEnd&& seen, int64_t growth_bytes);
  void know(Known&& known);
  Known* find();  // that the step which ran is
  void forget_oldest();
  void update(Known& known, StepEnd&& seen, int64_t growth_bytes);
  void learn(Known& known, const StepEnd& seen);
  void learn_as_published(Known& known, const StepEnd& seen);
  static void keep_held(Known& known);
  bool go_back(Known& known) const;
  void plan(Known& known);
  bool widen(Known& known);
  bool explore(Known& known);
  bool attempt(Known& known, std::vector<char> away);
  Limits limits_of(const Known& known) const;

  LearnerSettings settings_;
  std::vector<Known> steps_;
  size_t known_saves_ = 0;  // of all of them
  uint64_t seen_ = 0;
  std::unordered_map<uint64_t, size_t> by_prefix_;  // to the first step that begins so
  std::vector<uint64_t> prefixes_;                  // of the step that runs
  size_t current_ = kUnknown;
  size_t last_ = kUnknown;  // that was seen
  // So many steps more are looked at from their begins on, as one went on otherwise than it began,
  // and so many the next time that one does: where it seldom comes back it is met at last.
  int looks_ = 0, next_looks_ = 2;
  bool looks_at_next_ = false;
  bool looked_ = false;     // at the step that ends, for another's sake
  bool disturbed_ = false;  // the step that runs had no room: nothing is learned of it
  int64_t least_bytes_ = 0;
};

}  // namespace tierpilot::swap
