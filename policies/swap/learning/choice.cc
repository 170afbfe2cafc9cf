#include "policies/swap/learning/choice.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "policies/swap/machine/step_run.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/planner.h"

namespace tierpilot::swap {
namespace {

using Set = std::vector<char>;
constexpr double kPriceOfCopies = 0.05;  // of the time they take: they share memory and processors

Set all(const ObservedStep& step) {
  Set away(step.saves.size());
  for (size_t i = 0; i < away.size(); ++i) away[i] = !step.saves[i].held;
  return away;
}

// The inputs of convolutions: vDNN_conv (Rhu et al., vDNN: Virtualized Deep Neural Networks for
// Scalable, Memory-Efficient Neural Network Design, MICRO 2016).
Set vdnn(const ObservedStep& step) {
  auto away = all(step);
  for (size_t i = 0; i < away.size(); ++i) away[i] = away[i] && step.saves[i].convolution_input;
  return away;
}

// The longest free time first, until `share` of what is over the budget at the peak is covered.
// Free time is from the end of the copy out to the begin of the copy in.
Set longest_free(const ObservedStep& step, const Limits& limits, double share) {
  const auto saves = step.saves.size();
  std::vector<int64_t> ends(step.time_ns.size());
  std::partial_sum(step.time_ns.begin(), step.time_ns.end(), ends.begin());
  struct Candidate {
    int64_t free_ns;
    uint32_t save;
  };
  std::vector<Candidate> candidates;
  for (size_t use = 0; use < step.uses.size(); ++use) {
    const auto save = step.uses[use];
    if (step.saves[save].held) continue;
    const auto copies_ns =
        2 * (limits.link.copy_ns(step.saves[save].bytes) + limits.link.latency_ns);
    candidates.push_back({ends[saves + use] - ends[save] - copies_ns, save});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.free_ns > b.free_ns; });
  auto over = std::max<int64_t>(step.kept_bytes() - limits.budget_bytes, 0);
  over = static_cast<int64_t>(share * static_cast<double>(over));
  Set away(saves);
  for (const auto& [_, save] : candidates) {
    if (over <= 0) break;
    away[save] = true;
    over -= step.saves[save].bytes;
  }
  return away;
}

// What the plan of a whole step lets leave; nothing where none fits.
std::optional<Set> covered(const ObservedStep& step, const Limits& limits) {
  const auto made = graph_of(step);
  const auto found = plan_step(made.graph, {.limits = limits, .work = kQuickWork});
  if (!found.outcome.done) return {};
  Set away(step.saves.size());
  for (size_t i = 0; i < away.size(); ++i)
    away[i] = made.storage_of[i] != kNone && !found.plan.absences[made.storage_of[i]].empty();
  return away;
}

// The best of several by their replays, where copies cost a little though they run beside.
Choice planned(const ObservedStep& step, const Limits& limits) {
  std::vector<Set> candidates;
  for (const double share : {1.0, 1.15, 1.35})
    candidates.push_back(longest_free(step, limits, share));
  if (auto cover = covered(step, limits)) candidates.push_back(std::move(*cover));
  candidates.push_back(all(step));
  Choice best{.away = all(step)};
  double least = std::numeric_limits<double>::infinity();
  for (auto& away : candidates) {
    auto outcome = foretell(step, away, limits);
    if (!outcome.done) continue;
    const auto moved = outcome.counts.bytes_out + outcome.counts.bytes_in;
    const double copies =
        limits.link.exists() ? static_cast<double>(limits.link.copy_ns(moved)) : 0;
    const double cost = static_cast<double>(outcome.clock_ns) + kPriceOfCopies * copies;
    if (cost >= least) continue;
    least = cost;
    best = {.away = std::move(away), .foretold = std::move(outcome), .cost_ns = cost};
  }
  return best;
}

}  // namespace

std::span<const ChoiceRule> choice_rules() {
  static constexpr ChoiceRule rules[]{
      {"swap", "a plan of the whole step from measured times, corrected by what steps really take"},
      {"none", "nothing leaves"},
      {"swap-all", "everything leaves"},
      {"vdnn", "the inputs of convolutions leave"},
      {"capuchin", "the longest free time leaves first, until the peak fits"},
      {"q-published", "the published Q table: a layer type leaves or stays after each step"},
      {"checkpoint", "nothing leaves; segments are computed again"},
  };
  return rules;
}

Outcome foretell(const ObservedStep& step, const Set& away, const Limits& limits) {
  const auto made = graph_of(step);
  const Timetable timetable(made.graph);
  Plan plan{.absences = std::vector<std::vector<Absence>>(made.graph.storages.size())};
  for (size_t i = 0; i < away.size(); ++i) {
    const auto storage = made.storage_of[i];
    if (!away[i] || storage == kNone) continue;
    const auto& uses = timetable.uses(storage);
    if (uses.size() > 1) plan.absences[storage].push_back({uses[0], uses[1], Action::kSwap});
  }
  auto without = limits;
  without.recompute = false;
  PlannedEviction manager(made.graph, timetable, plan, limits.link);
  return run_step(made.graph, without, manager);
}

Choice choose(std::string_view rule, const ObservedStep& step, const Limits& limits) {
  auto without = limits;
  without.recompute = false;
  if (rule == "swap") return planned(step, without);
  Choice choice;
  if (rule == "none" || rule == "checkpoint") choice.away.assign(step.saves.size(), false);
  // What the table starts from.
  if (rule == "swap-all" || rule == "q-published") choice.away = all(step);
  if (rule == "vdnn") choice.away = vdnn(step);
  // Peng et al., Capuchin: Tensor-based GPU Memory Management for Deep Learning, ASPLOS 2020,
  // without its recomputing.
  if (rule == "capuchin") choice.away = longest_free(step, without, 1);
  return choice;
}

}  // namespace tierpilot::swap
