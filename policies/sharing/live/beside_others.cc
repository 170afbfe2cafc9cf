#include "policies/sharing/live/beside_others.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "policies/sharing/live/closely.h"
#include "policies/sharing/live/refusal.h"
#include "policies/sharing/live/taking.h"

namespace tierpilot::sharing {
namespace {

constexpr double kWorthStarting = 0.5;  // of what a job needs: with less it waits

// What it would have of a unit, if all bear it.
struct Fit {
  Wish wish;
  uint32_t milli = 0;
  double gain = 0;
};

// Where it fits by shares alone, if so much more of a unit were free: neighbours only make it need
// more.
template <class Lent>
std::vector<UnitAt> with_room_and(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                  const KeptApart& apart, Lent lent) {
  return looked_at_closely(
      nodes, [&](const LiveUnit& unit, size_t) -> std::optional<std::pair<bool, uint32_t>> {
        const auto* predicted = predicted_on(job, unit);
        const auto more = predicted ? lent(unit) : std::nullopt;
        if (!more || apart.on(unit, job)) return std::nullopt;
        const auto wish = wish_for(job, *predicted, 1, kAim);
        auto free = unit.free();
        free.milli += *more;
        if (free.milli < wish.least || free.memory_bytes < job.memory_bytes_on(*predicted))
          return std::nullopt;
        const uint32_t milli = std::min(free.milli, std::max(wish.least, wish.whole));
        return std::pair(milli < wish.whole, free.milli - milli);
      });
}

std::vector<UnitAt> with_room(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                              const KeptApart& apart) {
  return with_room_and(nodes, job, apart, [](const LiveUnit&) { return std::optional(0U); });
}

std::vector<UnitAt> with_lent(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                              const KeptApart& apart) {
  return with_room_and(nodes, job, apart, [](const LiveUnit& unit) {
    uint32_t milli = 0;
    for (const auto& other : unit.jobs) milli += other.lent_milli();
    return milli > 0 ? std::optional(milli) : std::nullopt;
  });
}

Fit fit_beside(const LiveUnit& unit, const WaitingJob& job, const Predicted& predicted,
               const Neighbours& neighbours, const Needed& needed) {
  Fit fit;
  const double kept = neighbours.kept(job.sharer, job.id).lower_beside(needed.upper);
  fit.wish = wish_for(job, predicted, kept, kAim);
  fit.milli = std::min(unit.free().milli, std::max(fit.wish.least, fit.wish.whole));
  fit.gain = neighbours.gain(job.sharer, speed_with(fit.milli, fit.wish.whole));
  return fit;
}

// A promise comes first.
bool adds_too_little(const Fit& fit, const Needed& needed) {
  return needed.speed <= 0 && fit.gain < kLeastGain;
}

// Nothing where there is too little, or somebody would be slowed too much.
std::optional<Fit> fit_on(const LiveUnit& unit, const WaitingJob& job, const Retained& retained) {
  const auto& predicted = *predicted_on(job, unit);
  const Neighbours neighbours(retained, unit.jobs);
  const auto needed = needed_for(job, predicted);
  if (neighbours.not_borne(job.sharer, needed)) return std::nullopt;
  const auto fit = fit_beside(unit, job, predicted, neighbours, needed);
  if (fit.milli < fit.wish.least || adds_too_little(fit, needed)) return std::nullopt;
  return fit;
}

// The unit as it is when they have given back what was lent to them, and what each then has.
std::pair<LiveUnit, std::vector<std::pair<uint64_t, uint32_t>>> with_lent_back(LiveUnit unit) {
  std::vector<std::pair<uint64_t, uint32_t>> left;
  for (auto& job : unit.jobs) {
    if (job.lent_milli() == 0) continue;
    job.share.milli = job.own_milli;
    left.emplace_back(job.id, job.share.milli);
  }
  return {std::move(unit), std::move(left)};
}

std::string words_of(const NotBorne& slowed, bool itself) {
  const std::string who = itself ? "it" : fmt::format("task {}", slowed.job);
  if (slowed.kept.part() < kLeastKept)
    return fmt::format("{} would keep {:.0f} % of its speed there, {:.0f} are the least", who,
                       100 * slowed.kept.part(), 100 * kLeastKept);
  return fmt::format("{} may keep as little as {:.0f} % of its speed, its promise needs {:.0f}",
                     who, 100 * slowed.kept.lower_beside(slowed.needed.upper),
                     100 * slowed.needed.speed);
}

// What is over stays lent.
std::vector<std::pair<uint64_t, uint32_t>> only_as_needed(
    const LiveUnit& unit, std::vector<std::pair<uint64_t, uint32_t>> left, uint32_t over) {
  for (auto& [id, milli] : left)
    for (const auto& job : unit.jobs)
      if (job.id == id) {
        const uint32_t kept = std::min(over, job.lent_milli());
        milli += kept;
        over -= kept;
      }
  return left;
}

// It can still be kept; else the job gets what there is, as one without a promise.
bool has_a_chance(const WaitingJob& job, const Predicted& predicted) {
  return !job.is_promised() || predicted.run_s <= 0 || predicted.run_s < job.promise_left_s;
}

}  // namespace

Wish wish_for(const WaitingJob& job, const Predicted& predicted, double retained, double aim) {
  const uint32_t need = job.asked.milli > 0 ? job.asked.milli : predicted.milli;
  if (job.job_class == JobClass::kLatencySensitive && has_a_chance(job, predicted))
    return {needed_milli({need, predicted.run_upper_s, predicted.start_s}, job.promise_left_s,
                         retained, aim),
            need};
  return {std::max(std::min(need, kLeastMilli), static_cast<uint32_t>(need * kWorthStarting)),
          need};
}

Needed needed_for(const WaitingJob& job, const Predicted& predicted) {
  return {needed_speed(predicted.run_upper_s, job.promise_left_s), upper_ratio(predicted)};
}

const Predicted* predicted_on(const WaitingJob& job, const LiveUnit& unit) {
  const auto found = job.predicted.find(unit.type);
  return found == job.predicted.end() ? nullptr : &found->second;
}

std::optional<Start> beside_others(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                   const Retained& retained, const KeptApart& apart) {
  std::optional<Start> best;
  auto best_rank = std::tuple(true, 0.0, UINT32_MAX);
  for (const auto& [n, u] : with_room(nodes, job, apart)) {
    const auto& unit = nodes[n][u];
    const auto fit = fit_on(unit, job, retained);
    if (!fit) continue;
    const auto rank =
        std::tuple(fit->milli < fit->wish.whole, -fit->gain, unit.free().milli - fit->milli);
    if (rank >= best_rank) continue;
    best_rank = rank;
    best = Start{n, u, {fit->milli, job.memory_bytes_on(*predicted_on(job, unit))}, {}, {}, {}};
    best->reason =
        fmt::format("{} of the {} thousandths that it needs{}, where the least is left", fit->milli,
                    fit->wish.whole, unit.jobs.empty() ? "" : ", beside others");
  }
  return best;
}

std::optional<Start> of_what_is_lent(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                     const Retained& retained, const KeptApart& apart) {
  std::optional<Start> best;
  double best_gain = 0;
  for (const auto& [n, u] : with_lent(nodes, job, apart)) {
    auto [unit, left] = with_lent_back(nodes[n][u]);
    const auto fit = fit_on(unit, job, retained);
    if (!fit || (best && fit->gain <= best_gain)) continue;
    best_gain = fit->gain;
    best = Start{n, u, {fit->milli, job.memory_bytes_on(*predicted_on(job, unit))}, {}, {}, {}};
    best->shrunk = only_as_needed(nodes[n][u], std::move(left), unit.free().milli - fit->milli);
    best->reason = fmt::format(
        "{} of the {} thousandths that it needs, of what others have beyond what they asked for",
        fit->milli, fit->wish.whole);
  }
  return best;
}

std::string refused_beside_others(const LiveUnit& there, const WaitingJob& job,
                                  const Retained& retained) {
  const auto* predicted = predicted_on(job, there);
  if (!predicted) return kOtherKind;
  const LiveUnit unit =
      job.job_class == JobClass::kBestEffort ? with_lent_back(there).first : there;
  const uint64_t bytes = job.memory_bytes_on(*predicted);
  if (auto small = too_small(unit, {wish_for(job, *predicted, 1, kAim).least, bytes});
      !small.empty())
    return small;
  const Neighbours neighbours(retained, unit.jobs);
  const auto needed = needed_for(job, *predicted);
  if (const auto slowed = neighbours.not_borne(job.sharer, needed))
    return words_of(*slowed, slowed->job == 0);
  const auto fit = fit_beside(unit, job, *predicted, neighbours, needed);
  if (fit.milli < fit.wish.least)
    return too_small(unit, {fit.wish.least, bytes}) + " beside those that are there";
  if (adds_too_little(fit, needed))
    return fmt::format(
        "beside it the others lose nearly what it gains: {:.2f} of a full speed more, {:.2f} are "
        "the least",
        std::max(0.0, fit.gain), kLeastGain);
  return {};
}

}  // namespace tierpilot::sharing
