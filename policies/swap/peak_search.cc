#include "policies/swap/peak_search.h"

#include <algorithm>

#include "policies/swap/bound/bound.h"
#include "policies/swap/cover.h"

namespace tierpilot::swap {

void PeakSearch::sweep_quickly() {
  peak_ = tightest(graph_, timetable_, limits_);
  if (peak_ == kNone) return;
  std::vector<PeakShares> shares;
  for (const double carried : {1.0, 0.8, 0.0})
    for (const double slack : {0.0, 0.1, 0.25})
      if (limits_.link.exists() || carried == 0) shares.push_back({slack, carried});
  peak_plans(graph_, timetable_, limits_, peak_, {}, shares,
             [&](const PeakChoice&, const Plan& plan, const Timetable& timetable) {
               trials_.change(plan, timetable, "peak");
               if (graph_.operators.size() <= kMostQuickOperators / 2) try_covered(plan, timetable);
             });
}

// What is cheapest where most has to be away.
void PeakSearch::sweep() {
  peak_ = tightest(graph_, timetable_, limits_);
  if (peak_ == kNone) return;
  std::vector<PeakShares> shares;
  const bool link = limits_.link.exists();
  for (const double carried : {1.0, 0.93, 0.8, 0.5, 0.0})
    for (const double slack : {0.0, 0.04, 0.1, 0.2, 0.4})
      if (link || carried == 0) shares.push_back({slack, carried});
  // Layers that are alike are told apart by where they stand.
  for (const double slope : {0.0, -0.03, 0.03}) {
    std::vector<float> factors(graph_.operators.size());
    for (size_t op = 0; op < factors.size(); ++op)
      factors[op] = static_cast<float>(1 + slope * static_cast<double>(op) /
                                               static_cast<double>(factors.size()));
    peak_plans(graph_, timetable_, limits_, peak_, factors, shares,
               [&](const PeakChoice& choice, const Plan& plan, const Timetable& timetable) {
                 try_plan(choice, factors, plan, timetable);
                 try_covered(plan, timetable);
               });
  }
}

// With what has to leave elsewhere.
void PeakSearch::try_covered(const Plan& plan, const Timetable& timetable) {
  const auto covered = Cover(graph_, timetable,
                             {.budget_bytes = limits_.budget_bytes,
                              .on_time = limits_.link.exists(),
                              .link = limits_.link,
                              .recompute = limits_.recompute,
                              .hurried = true})
                           .plan(plan);
  trials_.follow(covered, timetable, "peak");
}

void PeakSearch::try_plan(const PeakChoice& choice, const std::vector<float>& factors,
                          const Plan& plan, const Timetable& timetable) {
  for (const auto following : {Following::kMending, Following::kStrict}) {
    PlannedEviction manager(graph_, timetable, plan, limits_.link, following);
    Outcome outcome;
    trials_.attempt(manager, timetable, "peak", &outcome, Trials::kPromising);
    if (!best_ || better(outcome, best_->outcome)) best_ = {choice, factors, outcome};
  }
}

void PeakSearch::vary() {
  auto choice = best_->choice;
  choice.price *= random_.log_uniform(0.8, 1.25);
  if (random_.chance(0.5))
    choice.slack = std::clamp(choice.slack + 0.1 * (random_.unit() - 0.5), -0.1, 0.6);
  auto factors = best_->factors;
  if (factors.empty()) factors.assign(graph_.operators.size(), 1);
  const double share = random_.log_uniform(0.005, 0.3);
  for (auto& factor : factors)
    if (random_.chance(share)) factor *= static_cast<float>(random_.log_uniform(0.5, 2));
  peak_plan(graph_, timetable_, limits_, peak_, choice, factors,
            [&](const PeakChoice&, const Plan& plan, const Timetable& timetable) {
              try_plan(choice, factors, plan, timetable);
            });
}

}  // namespace tierpilot::swap
