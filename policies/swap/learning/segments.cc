#include "policies/swap/learning/segments.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {
namespace {

constexpr double kPriceOfCopies = 0.05;  // of the time they take: they share memory and processors
constexpr int kRuns = 8;                 // of each way: plans of what leaves have to settle in it
constexpr int kFewRuns = 4;
constexpr double kFaster = 0.7;     // than the step that was measured: of more worth
constexpr double kClearGain = 1.3;  // from which a few are enough
constexpr int kMostAdditions = 3;
constexpr int kMostAsked = 4;       // of each kind of step: one may come once
constexpr int kLooks = 4;           // in a row: others may come between
constexpr size_t kMostSteps = 256;  // more and all are forgotten: shapes that never repeat

// What copies of so many bytes, out beside the forward and in beside the backward pass, add.
double copies_ns(const SegmentedStep& step, const Link& link, int64_t bytes) {
  if (bytes <= 0) return 0;
  const auto each = static_cast<double>(link.copy_ns(bytes) + link.latency_ns);
  const auto beyond = [&](int64_t compute_ns) {
    return std::max(each - static_cast<double>(compute_ns), 0.0);
  };
  return beyond(step.forward_ns) + beyond(step.backward_ns) + 2 * kPriceOfCopies * each;
}

bool any_again(const std::unordered_map<uint64_t, bool>& again) {
  return std::any_of(again.begin(), again.end(), [](const auto& one) { return one.second; });
}

}  // namespace

SegmentChoice choose_segments(const SegmentedStep& step, const Link& link) {
  SegmentChoice choice{.again = std::vector<char>(step.segments.size())};
  if (step.over_bytes <= 0) return choice;
  std::vector<size_t> order;
  for (size_t i = 0; i < step.segments.size(); ++i) {
    const auto freed_bytes = step.segments[i].freed_bytes;
    const bool fits_at_once = freed_bytes <= step.room_bytes / 2;
    if (step.segments[i].possible && freed_bytes > 0 && fits_at_once) order.push_back(i);
  }
  const auto price = [&](size_t i) {
    return static_cast<double>(step.segments[i].compute_ns) /
           static_cast<double>(step.segments[i].freed_bytes);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return price(a) < price(b); });
  size_t best = 0;
  int64_t left = step.over_bytes;
  const double without = link.exists() ? copies_ns(step, link, left) : 0;
  double spent = 0, least = without;
  for (size_t count = 1; count <= order.size() && left > 0; ++count) {
    const auto& segment = step.segments[order[count - 1]];
    left -= segment.freed_bytes;
    spent += static_cast<double>(segment.compute_ns);
    const double cost = spent + (link.exists() ? copies_ns(step, link, left) : 0);
    if (link.exists() && cost >= least) continue;
    least = cost;
    best = count;
  }
  for (size_t i = 0; i < best; ++i) choice.again[order[i]] = true;
  const auto computing = static_cast<double>(step.forward_ns + step.backward_ns);
  if (link.exists()) choice.gain = (computing + without) / std::max(computing + least, 1.0);
  return choice;
}

bool SegmentLearner::active(const Known& known) const {
  return known.phase == Phase::kWith || (known.phase == Phase::kSettled && known.with);
}

bool SegmentLearner::begin(uint64_t place) {
  if (!learns_ && !all_) return false;
  if (!known_) {
    if (by_first_.size() >= kMostSteps && !by_first_.contains(place)) by_first_.clear();
    known_ = &by_first_[place];
  }
  if (!active(*known_)) return false;
  const auto found = known_->again.find(place);
  return found != known_->again.end() && found->second;
}

void SegmentLearner::forbid(uint64_t place) {
  if (known_) known_->again[place] = false;
}

// Where others used the machine meanwhile, another step tells more; none does once the way with
// recomputation was tried, or settled by another run.
bool SegmentLearner::tells_more(const Known& known, const SegmentedStep& step, bool first) const {
  if (all_) return known.phase == Phase::kMeasure;
  const auto computing_ns = static_cast<double>(step.forward_ns + step.backward_ns);
  return !first && known.least_with_ns == 0 && !known.restored && known.phase != Phase::kWith &&
         computing_ns < kFaster * static_cast<double>(known.computing_ns);
}

// A place that occurs twice in a step is one decision.
SegmentLearner::Choices SegmentLearner::choices(const SegmentedStep& step,
                                                const std::vector<char>& chosen) const {
  Choices found;
  for (size_t i = 0; i < step.segments.size(); ++i) {
    const auto& segment = step.segments[i];
    auto& choice = found.try_emplace(segment.place, true).first->second;
    choice = choice && segment.possible && (all_ || chosen[i]);
  }
  return found;
}

void SegmentLearner::measured(Known& known, const SegmentedStep& step, const Link& link) {
  const auto chosen = choose_segments(step, link);
  looks_ = 0;
  known.gain = chosen.gain;
  known.computing_ns = step.forward_ns + step.backward_ns;
  known.again = choices(step, chosen.again);
  known.left.reset();
  known.before.clear();
  known.least_before_ns = 0;
  known.additions = known.runs = 0;
  const bool any = any_again(known.again);
  known.phase = any ? (all_ ? Phase::kSettled : Phase::kWithout) : Phase::kSettled;
  known.with = any && all_;
}

void SegmentLearner::end(const SegmentedStep* step, const Link& link, int64_t step_ns, bool fits) {
  looks_ = std::max(looks_ - 1, 0);
  auto* known = std::exchange(known_, nullptr);
  if (!known) return;
  const bool unknown = learns_ && known->phase == Phase::kMeasure && step_ns > 0;
  if (!step && unknown && known->asked++ < kMostAsked) looks_ = kLooks;
  const bool first = std::exchange(known->first, false);
  if (step && known->phase == Phase::kWith) known->left = *step;
  if (step && !active(*known) && tells_more(*known, *step, first))
    return measured(*known, *step, link);
  if (known->phase == Phase::kMeasure || known->phase == Phase::kSettled) return;
  auto& least = known->phase == Phase::kWith ? known->least_with_ns : known->least_without_ns;
  if (fits) least = least == 0 ? step_ns : std::min(least, step_ns);
  if (++known->runs < kRuns && !is_clear(*known)) return;
  known->runs = 0;
  if (known->phase == Phase::kWithout) {
    known->phase = Phase::kWith;
    return;
  }
  if (adds(*known, link)) return;
  known->phase = Phase::kSettled;
  known->left.reset();
  // Where neither way kept to the budget, the one that needs less.
  known->with = known->least_without_ns == 0 ||
                (known->least_with_ns > 0 && known->least_with_ns < known->least_without_ns);
}

// How much is over the budget is reckoned before anything is computed again. A step with it shows
// what is still to be copied; more of the segments are tried then, and kept where that is faster.
bool SegmentLearner::adds(Known& known, const Link& link) const {
  const auto is_less = [](int64_t a_ns, int64_t b_ns) {
    return a_ns > 0 && (b_ns == 0 || a_ns < b_ns);
  };
  if (known.additions > 0 && !is_less(known.least_with_ns, known.least_before_ns)) {
    known.again = std::exchange(known.before, {});
    known.least_with_ns = known.least_before_ns;
    return false;
  }
  if (all_ || !known.left || known.additions >= kMostAdditions) return false;
  auto more = known.again;
  for (const auto& [place, again] : choices(*known.left, choose_segments(*known.left, link).again))
    if (again) more[place] = true;
  if (more == known.again) return false;
  ++known.additions;
  known.before = std::exchange(known.again, std::move(more));
  known.least_before_ns = std::exchange(known.least_with_ns, 0);
  return true;
}

// A few runs tell a large difference. That the way without is so much slower is an estimate as long
// as only it was tried.
bool SegmentLearner::is_clear(const Known& known) const {
  if (known.runs < kFewRuns) return false;
  if (known.phase == Phase::kWithout) return known.gain > kClearGain;
  return known.least_with_ns > 0 && static_cast<double>(known.least_without_ns) >
                                        kClearGain * static_cast<double>(known.least_with_ns);
}

std::vector<KeptSegments> SegmentLearner::kept() const {
  std::vector<KeptSegments> all;
  for (const auto& [first, known] : by_first_) {
    if (known.phase != Phase::kSettled) continue;
    KeptSegments kept{.first = first, .ran = !known.first};
    for (const auto& [place, again] : known.again)
      kept.again.emplace_back(place, known.with && again);
    std::sort(kept.again.begin(), kept.again.end());
    all.push_back(std::move(kept));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

void SegmentLearner::restore(const std::vector<KeptSegments>& kept) {
  for (const auto& one : kept) {
    auto& known = by_first_[one.first];
    known = {.phase = Phase::kSettled, .restored = true, .with = true};
    known.again.insert(one.again.begin(), one.again.end());
  }
}

}  // namespace tierpilot::swap
