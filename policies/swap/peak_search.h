// Plans of what is cheapest at the tightest point of a step, with what has to leave elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "base/random.h"
#include "policies/swap/bound/peak_plans.h"
#include "policies/swap/trials.h"

namespace tierpilot::swap {

class PeakSearch {
 public:
  static constexpr size_t kMostQuickOperators = 1'000;  // larger cuts take too long

  // All of it has to outlive the search.
  PeakSearch(const Graph& graph, const Limits& limits, const Timetable& timetable,
             SeededRandom& random, Trials& trials)
      : graph_(graph), limits_(limits), timetable_(timetable), random_(random), trials_(trials) {}

  void sweep_quickly();
  void sweep();
  // Whether one that was found is not far behind the best plan.
  bool promising() const { return best_ && trials_.is_promising(best_->outcome); }
  // By chance, around the best of them.
  void vary();

 private:
  struct Peaked {
    PeakChoice choice;
    std::vector<float> factors;
    Outcome outcome{};
  };
  void try_plan(const PeakChoice& choice, const std::vector<float>& factors, const Plan& plan,
                const Timetable& timetable);
  void try_covered(const Plan& plan, const Timetable& timetable);

  const Graph& graph_;
  const Limits& limits_;
  const Timetable& timetable_;
  SeededRandom& random_;
  Trials& trials_;
  Position peak_ = kNone;
  std::optional<Peaked> best_;
};

}  // namespace tierpilot::swap
