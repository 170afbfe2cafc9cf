#include "policies/sharing/interference/pace_watch.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace tierpilot::sharing {
namespace {

constexpr double kMostLn = 1.6;     // a factor of five: no neighbour does more
constexpr double kMostGain = 0.35;  // of its pace by a neighbour that came; more is another cause
constexpr double kLeastSpread = 0.03, kUsualSpread = 0.06;  // of ln(pace) between windows
constexpr double kOtherRun = 0.03;  // of ln: by what a next run of the same pair differs
constexpr double kOfMedian = 1.57;  // variance of a median by that of a mean

// Of windows about their median, by the median of distances: one odd window does not widen it.
double spread(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  // A few windows may lie close to each other by chance.
  return std::max({kLeastSpread, kDeviationOfMad * median(distances), kUsualSpread / 2});
}

std::vector<Sharer> missing_in(const std::vector<Neighbour>& others,
                               const std::vector<Neighbour>& of) {
  std::vector<Sharer> missing;
  for (const auto& each : of)
    if (std::none_of(others.begin(), others.end(),
                     [&](const Neighbour& other) { return other.id == each.id; }))
      missing.push_back(each.sharer);
  return missing;
}

void sort_by_id(std::vector<Neighbour>& neighbours) {
  std::sort(neighbours.begin(), neighbours.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.id < b.id; });
}

bool same(const std::vector<Neighbour>& one, const std::vector<Neighbour>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.id == b.id; });
}

}  // namespace

bool PaceWatch::is_beside(std::vector<Neighbour> neighbours) const {
  sort_by_id(neighbours);
  return same(neighbours, now_.neighbours);
}

std::optional<PaceChange> PaceWatch::beside(std::vector<Neighbour> neighbours) {
  sort_by_id(neighbours);
  if (same(neighbours, now_.neighbours)) return std::nullopt;
  const auto told = told_ ? std::nullopt : change();
  if (now_.ln_paces.size() >= kFewest) before_ = std::move(now_);
  now_ = {std::move(neighbours), {}};
  told_ = false;
  return told;
}

std::optional<PaceChange> PaceWatch::add(double pace) {
  if (!std::isfinite(pace) || !(pace > 0)) return std::nullopt;
  measured_ = true;
  auto& paces = now_.ln_paces;
  if (paces.size() == kEnough) paces.erase(paces.begin());
  paces.push_back(std::log(pace));
  if (told_ || paces.size() < kEnough) return std::nullopt;
  told_ = true;
  return change();
}

std::optional<PaceChange> PaceWatch::change() const {
  if (!before_ || now_.ln_paces.size() < kFewest) return std::nullopt;
  PaceChange change{missing_in(before_->neighbours, now_.neighbours),
                    missing_in(now_.neighbours, before_->neighbours),
                    median(now_.ln_paces) - median(before_->ln_paces)};
  if (change.came.empty() && change.went.empty()) return std::nullopt;
  // With fewer neighbours it cannot become slower by them, with more not faster; a little it may
  // seem to.
  const double most = change.came.empty() ? kMostLn : kMostGain;
  const double least = change.went.empty() ? -kMostLn : -kMostGain;
  const bool both = !change.came.empty() && !change.went.empty();
  if (change.ln > (both ? kMostLn : most) || change.ln < (both ? -kMostLn : least))
    return std::nullopt;
  change.variance = kOtherRun * kOtherRun;
  for (const auto* paces : {&now_.ln_paces, &before_->ln_paces}) {
    const double each = spread(*paces);
    change.variance += kOfMedian * each * each / static_cast<double>(paces->size());
  }
  return change;
}

}  // namespace tierpilot::sharing
