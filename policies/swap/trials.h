// Replays of plans, the best of them, and a walk from plan to plan.
#pragma once

#include <string_view>
#include <vector>

#include "base/random.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/planner.h"

namespace tierpilot::swap {

// Whether it is done in less time, or at all; of two that failed, which came further.
bool better(const Outcome& a, const Outcome& b);

// A plan, the uses that it counts on (more than the program has, at times), and what came of it.
struct Tried {
  Plan plan{};
  Timetable timetable;
  Outcome outcome{};
};

class Trials {
 public:
  // A replay that takes so many times more than the best one may be worth a change.
  static constexpr double kPromising = 1.6;

  Trials(const Graph& graph, const Limits& limits, SeededRandom& random)
      : graph_(graph), limits_(limits), random_(random), best_{.timetable = Timetable(graph)} {}

  // Whether it is the best so far. The timetable is the one that the manager goes by. A replay is
  // given up where its overhead will be so many times that of the best.
  bool attempt(Manager& manager, const Timetable& timetable, std::string_view origin,
               Outcome* seen = nullptr, double patience = 1);
  bool mend(const Plan& plan, const Timetable& timetable, std::string_view origin);
  // As published, and mended where they do not fit.
  void follow(const Plan& plan, const Timetable& timetable, std::string_view origin);
  // What another search found, with as many trials: the best where it is better.
  void adopt(const Trials& other);
  // A change of the best one.
  void change(const Plan& plan, const Timetable& timetable, std::string_view origin = {});

  // A walk from plan to plan by changes, which may also go to a worse one: not worse than where it
  // was some changes ago (Burke and Bykov, The Late Acceptance Hill-Climbing Heuristic, 2017).
  // Until it begins, changes are of the best one.
  void begin_walk();
  bool walking() const { return !late_ns_.empty(); }
  const Tried& here() const { return walking() ? walk_ : best_; }
  void go(const Plan& plan, const Timetable& timetable);

  const Tried& best() const { return best_; }
  // Not far behind the best.
  bool is_promising(const Outcome& outcome) const {
    return outcome.done && outcome.overhead() - 1 < kPromising * (best_.outcome.overhead() - 1);
  }
  const std::string& origin() const { return origin_; }
  int done() const { return done_; }
  void count(int more) { done_ += more; }

 private:
  const Graph& graph_;
  const Limits& limits_;
  SeededRandom& random_;
  Tried best_, walk_{best_};
  std::string origin_;
  std::vector<int64_t> late_ns_;  // where the walk was, the last changes
  size_t steps_ = 0;
  int done_ = 0;
};

}  // namespace tierpilot::swap
