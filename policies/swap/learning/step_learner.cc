#include "policies/swap/learning/step_learner.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/random.h"

namespace tierpilot::swap {
namespace {

constexpr int kRunsOfAnAttempt = 2;         // the first one may be disturbed
constexpr int kObservedRuns = 2;            // an optimiser has its states from the second step on
constexpr double kWider[] = {0.9, 0.8, 0};  // of the budget: plans that let more leave
constexpr double kGain = 0.98;              // of the best one's time: less is noise
constexpr double kUnused = 0.05;            // of the budget, from where it is worth a new plan
constexpr double kStalled = 0.01;           // of a step
constexpr double kTight = 1.025;   // of the budget, which is a twentieth below the real one
constexpr int kMostOvers = 2;      // in a row: that is no chance, and no margin mends it
constexpr int kMostLooks = 64;     // steps in a row that are looked at for one that is not known
constexpr double kNoRoom = 2;      // q-published: time and memory of a round that had no room
constexpr int kMostFailures = 3;   // of a step, until nothing of it is tried any more
constexpr double kNewTimes = 0.3;  // weight of the last step's times

uint64_t extended(uint64_t prefix, const SavedStorage& storage) {
  return mixed_bits(prefix * 31 + storage.place) ^ static_cast<uint64_t>(storage.bytes);
}

bool lets_leave(const std::string& rule) {
  return rule != "none" && rule != "checkpoint";
}

bool more_can_leave(const ObservedStep& step, const std::vector<char>& away) {
  for (size_t i = 0; i < away.size(); ++i)
    if (!away[i] && !step.saves[i].held) return true;
  return false;
}

}  // namespace

void StepLearner::begin() {
  prefixes_.clear();
  current_ = kUnknown;
}

Advice StepLearner::save(const SavedStorage& storage) {
  const auto at = prefixes_.size();
  const auto prefix = extended(at == 0 ? 1 : prefixes_.back(), storage);
  prefixes_.push_back(prefix);
  const auto begins_so = [&](size_t step) {
    return step != kUnknown && at < steps_[step].prefixes.size() &&
           steps_[step].prefixes[at] == prefix;
  };
  if (!begins_so(current_)) {
    const auto found = by_prefix_.find(prefix);
    // A plan file may have been made so that one of another length has it.
    current_ = found != by_prefix_.end() && begins_so(found->second) ? found->second : kUnknown;
  }
  if (current_ == kUnknown) return {.away = lets_leave(settings_.rule), .observe = true};
  auto& known = steps_[current_];
  if (std::exchange(known.outdated, false)) {
    known.best = {};
    plan(known);
  }
  return {.away = known.now.away[at] != 0,
          .observe = known.observe || looks_ > 0 || looks_at_next_};
}

const ObservedStep* StepLearner::expected() const {
  return current_ == kUnknown ? nullptr : &steps_[current_].step;
}

Limits StepLearner::limits_of(const Known& known) const {
  auto limits = settings_.limits;
  limits.budget_bytes -= known.margin_bytes;
  return limits;
}

void StepLearner::plan(Known& known) {
  auto choice = choose(settings_.rule, known.step, limits_of(known));
  known.now = {.away = std::move(choice.away),
               .foretold_ns = choice.foretold ? choice.foretold->clock_ns : 0};
  known.exploring = false;
}

void StepLearner::add(StepEnd&& seen, int64_t growth_bytes) {
  // Where it began as a known one it was not looked at then: the next one of it is.
  if (seen.step.other_bytes.size() != seen.step.time_ns.size()) {
    looks_ = next_looks_;
    next_looks_ = std::min(2 * next_looks_, kMostLooks);
    return;
  }
  looks_ = 0;
  const auto is_full = [this] {
    return steps_.size() >= kMostKnownSteps ||
           (steps_.size() >= kFewKnownSteps && known_saves_ > kMostKnownSaves);
  };
  while (is_full()) forget_oldest();
  Known known{.step = std::move(seen.step), .prefixes = prefixes_};
  for (auto& other : known.step.other_bytes) other += std::max<int64_t>(growth_bytes, 0);
  least_bytes_ = known.step.least_bytes();
  plan(known);
  know(std::move(known));
}

void StepLearner::know(Known&& known) {
  for (const auto prefix : known.prefixes) by_prefix_.emplace(prefix, steps_.size());
  known_saves_ += known.prefixes.size();
  known.seen_at = ++seen_;
  steps_.push_back(std::move(known));
}

// Shapes that never repeat leave others alone.
void StepLearner::forget_oldest() {
  const auto oldest =
      std::min_element(steps_.begin(), steps_.end(),
                       [](const Known& a, const Known& b) { return a.seen_at < b.seen_at; });
  known_saves_ -= oldest->prefixes.size();
  steps_.erase(oldest);
  by_prefix_.clear();
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const auto prefix : steps_[i].prefixes) by_prefix_.emplace(prefix, i);
}

void StepLearner::update(Known& known, StepEnd&& seen, int64_t growth_bytes) {
  known.seen_at = ++seen_;
  known.restored = false;
  if (seen.step.uses != known.step.uses || seen.step.saves.size() != known.step.saves.size()) {
    // The same forward pass with another backward pass. The plan serves both where they take turns:
    // that one is to be expected which came twice in a row, or took too much.
    const bool again = std::exchange(known.other_uses, seen.step.uses) == seen.step.uses;
    if (!again && seen.peak_bytes <= settings_.limits.budget_bytes) return;
    if (seen.step.other_bytes.size() == seen.step.time_ns.size()) known.step = seen.step;
    known.best = {};
    known.widened = 0;
    return plan(known);
  }
  known.other_uses.clear();
  ++known.runs;
  // The first one of a program is slow: it takes memory, and loads what it computes with.
  const double weight = known.runs == 1 ? 1 : kNewTimes;
  for (size_t at = 0; at < known.step.time_ns.size() && seen.timed; ++at) {
    auto& time = known.step.time_ns[at];
    time += static_cast<int64_t>(weight * static_cast<double>(seen.step.time_ns[at] - time));
  }
  for (size_t i = 0; i < known.step.saves.size(); ++i)
    known.step.saves[i].held |= seen.step.saves[i].held;
  const bool observed = seen.step.other_bytes.size() == seen.step.time_ns.size();
  if (observed) {
    known.step.other_bytes = seen.step.other_bytes;
    for (auto& other : known.step.other_bytes) other += std::max<int64_t>(growth_bytes, 0);
  }
  least_bytes_ = known.step.least_bytes();
  const bool over = seen.peak_bytes > settings_.limits.budget_bytes;
  known.overs = over ? known.overs + 1 : 0;
  // Looking closely gives all free memory back at each event, which makes a step slow, and is all
  // that there is to do where hardly anything is left of the budget.
  const bool tight = static_cast<double>(seen.peak_bytes) >
                     kTight * static_cast<double>(settings_.limits.budget_bytes);
  const bool asked = known.observe;
  const bool mends = settings_.rule == "swap" && known.overs >= kMostOvers &&
                     more_can_leave(known.step, known.now.away);
  if (mends) known.overs = 0;
  known.observe = settings_.rule != "none" && (known.runs < kObservedRuns || tight || mends);
  if (settings_.rule == "q-published") return learn_as_published(known, seen);
  if (known.failed && known.failures < kMostFailures) {
    known.failed = false;
    if (std::exchange(known.failed_trying, false) && go_back(known)) return;
    known.best = {};
    return plan(known);
  }
  if (observed && known.runs <= kObservedRuns && !known.failed) return plan(known);
  if (observed && looked_ && !asked) return;  // looking takes time
  learn(known, seen);
}

// A round is a step. Memory is what the device held at most, time what computing alone takes.
void StepLearner::learn_as_published(Known& known, const StepEnd& seen) {
  if (!known.published) {
    std::vector<uint32_t> kinds;
    for (const auto& save : known.step.saves) kinds.push_back(save.kind);
    known.published.emplace(kinds, known.now.away);
  }
  if (std::exchange(known.failed, false)) {
    // This step ran with everything away: the round that is judged is the one before, whose plan
    // had no room.
    known.published->end_round(kNoRoom, kNoRoom);
    known.now = {.away = known.published->plan()};
    return keep_held(known);
  }
  const auto behind_ns = seen.passes_ns > 0 ? known.step.time_ns.back() : 0;
  const auto compute_ns = std::max<int64_t>(known.step.compute_ns() - behind_ns, 1);
  known.published->end_round(
      static_cast<double>(seen.cost_ns()) / static_cast<double>(compute_ns),
      static_cast<double>(seen.peak_bytes) / static_cast<double>(settings_.limits.budget_bytes));
  known.now = {.away = known.published->plan()};
  keep_held(known);
}

void StepLearner::keep_held(Known& known) {
  for (size_t i = 0; i < known.now.away.size(); ++i)
    if (known.step.saves[i].held) known.now.away[i] = false;
}

// Unless it does not fit any more either: the budget may have been lowered.
bool StepLearner::go_back(Known& known) const {
  if (!foretell(known.step, known.best.away, limits_of(known)).done) return false;
  known.now = known.best;
  known.widened = std::size(kWider);
  known.explorations = settings_.most_explorations;
  return true;
}

// A plan that took too much is replaced at once; else each is tried twice and held to the best one.
void StepLearner::learn(Known& known, const StepEnd& seen) {
  if (settings_.rule != "swap" || known.failed) return;
  const auto budget = settings_.limits.budget_bytes;
  if (seen.peak_bytes > budget) {
    if (!more_can_leave(known.step, known.now.away)) return;
    known.margin_bytes += seen.peak_bytes - budget + budget / 100;
    known.best = {};
    return plan(known);
  }
  auto& now = known.now;
  now.least_ns = now.runs == 0 ? seen.cost_ns() : std::min(now.least_ns, seen.cost_ns());
  if (++now.runs < kRunsOfAnAttempt) return;
  const bool first = known.best.runs == 0;
  if (first || static_cast<double>(now.least_ns) < kGain * static_cast<double>(known.best.least_ns))
    known.best = now;
  else if (known.exploring)
    known.now = known.best;
  else
    known.best.least_ns = std::min(known.best.least_ns, now.least_ns);
  known.exploring = false;
  if (known.widened < std::size(kWider) && widen(known)) return;
  const auto unused = budget - seen.peak_bytes;
  const bool stalls =
      static_cast<double>(seen.waited_ns()) > kStalled * static_cast<double>(seen.whole_ns());
  if (!stalls || known.explorations >= settings_.most_explorations) return;
  ++known.explorations;
  if (seen.peak_bytes > 0 && static_cast<double>(unused) > kUnused * static_cast<double>(budget)) {
    known.margin_bytes -= unused / 2;
    const auto best = known.best;
    plan(known);
    known.best = best;
    known.exploring = known.now.away != best.away;
    return;
  }
  explore(known);
}

// More leaves than has to: a device that is nearly full is slow where its memory is given back and
// taken anew.
bool StepLearner::widen(Known& known) {
  auto limits = limits_of(known);
  const double share = kWider[known.widened++];
  limits.budget_bytes = static_cast<int64_t>(share * static_cast<double>(limits.budget_bytes));
  auto choice = choose(settings_.rule, known.step, limits);
  return attempt(known, std::move(choice.away));
}

// Runs next, where its replay is bounded and it is another one than the best.
bool StepLearner::attempt(Known& known, std::vector<char> away) {
  const auto outcome = foretell(known.step, away, limits_of(known));
  const auto most = static_cast<double>(known.best.foretold_ns) * (1 + settings_.explore_bound);
  if (!outcome.done || static_cast<double>(outcome.clock_ns) > most) return false;
  if (away == known.best.away) return false;
  known.now = {.away = std::move(away), .foretold_ns = outcome.clock_ns};
  return known.exploring = true;
}

// The other way round for all tensors of a kind, one kind after the other.
bool StepLearner::explore(Known& known) {
  std::set<uint32_t> kinds;
  for (const auto& save : known.step.saves) kinds.insert(save.kind);
  const std::vector<uint32_t> order(kinds.begin(), kinds.end());
  for (size_t tried = 0; tried < order.size(); ++tried) {
    const auto kind = order[known.next_kind++ % order.size()];
    auto away = known.best.away;
    size_t kept = 0, count = 0;
    for (size_t i = 0; i < away.size(); ++i)
      if (known.step.saves[i].kind == kind && !known.step.saves[i].held) ++count, kept += !away[i];
    for (size_t i = 0; i < away.size(); ++i)
      if (known.step.saves[i].kind == kind && !known.step.saves[i].held)
        away[i] = kept * 2 >= count;
    if (attempt(known, std::move(away))) return true;
  }
  return false;
}

void StepLearner::end(StepEnd seen, int64_t growth_bytes) {
  if (prefixes_.empty()) return;
  if (std::exchange(disturbed_, false)) return begin();
  last_ = kUnknown;
  looked_ = looks_ > 0 || looks_at_next_;
  looks_ = std::max(looks_ - 1, 0);
  if (current_ != kUnknown && steps_[current_].prefixes.size() == prefixes_.size())
    update(steps_[last_ = current_], std::move(seen), growth_bytes);
  else if (auto* shorter = find())
    shorter->seen_at = ++seen_;  // than another, whose plan it had
  else
    add(std::move(seen), growth_bytes);
  looks_at_next_ = false;
  begin();
}

StepLearner::Known* StepLearner::find() {
  const auto same = [this](const Known& known) { return known.prefixes == prefixes_; };
  const auto found = std::find_if(steps_.begin(), steps_.end(), same);
  return found == steps_.end() ? nullptr : &*found;
}

void StepLearner::look_again(int64_t more_bytes) {
  for (auto& known : steps_) {
    // What is less is seen before it is used.
    for (auto& other : known.step.other_bytes) other += std::max<int64_t>(more_bytes, 0);
    plan(known);
    known.runs = 0;
    known.observe = true;
    known.exploring = false;
    known.best = {};
  }
}

// Each when it comes next: they may be many. The one that has failed is when it has run again.
void StepLearner::set_budget(int64_t bytes) {
  settings_.limits.budget_bytes = bytes;
  if (settings_.rule == "q-published") return;  // has its own plan
  for (auto& known : steps_) known.outdated = !known.failed;
}

std::optional<double> StepLearner::foretold_ns(int64_t more_bytes) const {
  if (last_ >= steps_.size()) return std::nullopt;
  auto limits = limits_of(steps_[last_]);
  limits.budget_bytes -= more_bytes;
  const auto choice = choose(settings_.rule, steps_[last_].step, limits);
  return choice.foretold ? std::optional(choice.cost_ns) : std::nullopt;
}

bool StepLearner::learning() const {
  if (current_ == kUnknown || looks_ > 0 || looks_at_next_) return true;
  return steps_[current_].observe || steps_[current_].exploring;
}

std::vector<KeptStep> StepLearner::kept() const {
  std::vector<KeptStep> all;
  for (const auto& known : steps_) {
    // One that was seen once may have been an evaluation, or the first without the optimiser's
    // states.
    if (known.runs < kObservedRuns) continue;
    if (known.step.other_bytes.size() != known.step.time_ns.size()) continue;
    const auto& attempt = known.best.runs > 0 ? known.best : known.now;
    all.push_back({.step = known.step,
                   .away = attempt.away,
                   .margin_bytes = known.margin_bytes,
                   .explorations = known.explorations,
                   .widened = known.widened,
                   .next_kind = known.next_kind,
                   .ran = !known.restored,
                   .fits = !known.failed});
  }
  return all;
}

void StepLearner::restore(std::vector<KeptStep> kept) {
  for (auto& one : kept) {
    if (steps_.size() >= kMostKnownSteps || one.step.saves.empty()) continue;
    Known known{.step = std::move(one.step)};
    uint64_t prefix = 1;
    for (const auto& save : known.step.saves) {
      prefix = extended(prefix, save);
      known.prefixes.push_back(prefix);
    }
    known.now.away = std::move(one.away);
    known.margin_bytes = one.margin_bytes;
    known.explorations = one.explorations;
    known.widened = one.widened;
    known.next_kind = one.next_kind;
    known.runs = kObservedRuns;
    known.observe = false;
    known.restored = true;
    const auto outcome = foretell(known.step, known.now.away, limits_of(known));
    known.now.foretold_ns = outcome.done ? outcome.clock_ns : 0;
    know(std::move(known));
  }
}

bool StepLearner::failed() {
  disturbed_ = !prefixes_.empty();
  if (current_ == kUnknown) return false;
  auto& known = steps_[current_];
  known.failed = true;
  known.failed_trying = std::exchange(known.exploring, false) && known.best.runs > 0;
  if (!known.failed_trying) ++known.failures;
  known.now = {.away = choose("swap-all", known.step, limits_of(known)).away};
  return known.failed_trying;
}

}  // namespace tierpilot::swap
