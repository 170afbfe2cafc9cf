#include "policies/swap/bound/peak_plans.h"

#include <algorithm>
#include <set>

#include "policies/swap/link/link_calendar.h"

namespace tierpilot::swap {
namespace {

class Drafts {
 public:
  Drafts(const Graph& graph, const Timetable& timetable, const Limits& limits, const Peak& peak)
      : graph_(graph), timetable_(timetable), limits_(limits), peak_(peak) {}

  // What is available and does not stay leaves over the link, as far as that has time.
  void draft(const PeakChoice& choice, const TakePlan& take) {
    plan_ = {.absences = std::vector<std::vector<Absence>>(graph_.storages.size())};
    uses_ = timetable_;
    needed_.assign(graph_.storages.size(), kNone);
    kept_.assign(graph_.storages.size(), {});
    for (const auto& [to, storage] : made_again()) need_arguments(storage, to);
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
      uses_.also_used(storage, {kept_[storage].begin(), kept_[storage].end()});
    drop();
    const auto room = static_cast<double>(limits_.budget_bytes - peak_.fixed_bytes());
    carry(static_cast<double>(peak_.available_bytes()) - room * (1 - choice.slack));
    take(choice, plan_, uses_);
  }

 private:
  bool alive(StorageId storage) const {
    const auto& uses = timetable_.uses(storage);
    return !uses.empty() && uses.front() < peak_.at() && uses.back() > peak_.at();
  }

  // What is alive and made again, by when it is used next.
  std::vector<std::pair<Position, StorageId>> made_again() const {
    std::vector<std::pair<Position, StorageId>> found;
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
      if (!graph_.storages[storage].constant && alive(storage) && peak_.made_again(storage))
        found.emplace_back(timetable_.next_use(storage, peak_.at()), storage);
    std::sort(found.begin(), found.end());
    return found;
  }

  // To make it again at `to`, what its operator reads has to be there then.
  void need_arguments(StorageId storage, Position to) {
    std::vector<StorageId> walk{storage};
    while (!walk.empty()) {
      const auto at = walk.back();
      walk.pop_back();
      if (needed_[at] != kNone) continue;  // it has been made for an earlier use
      needed_[at] = to;
      if (!peak_.made_again(at)) {
        if (timetable_.uses(at).back() < to) kept_[at].insert(to);
        continue;
      }
      const auto maker = graph_.tensors[graph_.storages[at].tensors.front()].maker;
      for (const auto arg : graph_.operators[maker].args) {
        const auto near = graph_.tensors[arg].storage;
        if (graph_.storages[near].constant) continue;
        if (peak_.made_again(near))
          walk.push_back(near);
        else if (peak_.available(near))
          keep(near, to);
      }
    }
  }

  void keep(StorageId storage, Position to) {
    needed_[storage] = std::min(needed_[storage], to);
    if (timetable_.uses(storage).back() < to) kept_[storage].insert(to);
  }

  // From the last use before the peak to the first need after it.
  std::optional<Absence> absence(StorageId storage, Action action) const {
    const auto& uses = uses_.uses(storage);
    const auto after = std::upper_bound(uses.begin(), uses.end(), peak_.at());
    if (after == uses.begin() || after == uses.end()) return {};
    const auto to = std::min(*after, needed_[storage]);
    const auto from = *std::prev(after);
    if (to <= from + 1) return {};
    return Absence{from, to, action};
  }

  void drop() {
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      if (graph_.storages[storage].constant || !alive(storage)) continue;
      if (!peak_.made_again(storage)) continue;
      if (const auto found = absence(storage, Action::kRecompute))
        plan_.absences[storage].push_back(*found);
    }
  }

  // What can leave first leaves first: it is needed last, too.
  void carry(double bytes) {
    if (!limits_.link.exists() || bytes <= 0) return;
    std::vector<std::pair<Absence, StorageId>> candidates;
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      if (graph_.storages[storage].constant || !peak_.available(storage)) continue;
      if (graph_.storages[storage].bytes == 0) continue;
      if (const auto found = absence(storage, Action::kSwap))
        candidates.emplace_back(*found, storage);
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.first.from != b.first.from ? a.first.from < b.first.from : a.first.to > b.first.to;
    });
    LinkCalendar calendar(uses_, limits_.link);
    for (const auto& [found, storage] : candidates) {
      if (bytes <= 0) return;
      const auto size = graph_.storages[storage].bytes;
      const auto trip = calendar.find(found.from, found.to, size);
      if (!trip || trip->away_from > peak_.at() || trip->back_at <= peak_.at()) continue;
      calendar.take(*trip);
      plan_.absences[storage].push_back(found);
      bytes -= static_cast<double>(size);
    }
  }

  const Graph& graph_;
  const Timetable& timetable_;
  const Limits& limits_;
  const Peak& peak_;
  Plan plan_;
  Timetable uses_{Graph{}};
  std::vector<Position> needed_;  // by storage: the first need after the peak; kNone: none known
  std::vector<std::set<Position>> kept_;
};

constexpr size_t kCoarse = 60, kFine = 240;  // rungs of ladders of prices

// How much is available at most, for each of the shares.
class Targets {
 public:
  Targets(const Timetable& timetable, const Limits& limits, std::span<const PeakShares> shares)
      : timetable_(timetable), limits_(limits), shares_(shares) {}

  bool met(const Peak& peak, size_t share) const {
    const auto room = static_cast<double>(limits_.budget_bytes - peak.fixed_bytes());
    const auto carried = carried_bytes(timetable_, limits_.link, peak.at(),
                                       static_cast<double>(peak.made_again_ns()));
    return static_cast<double>(peak.available_bytes()) <=
           room * (1 - shares_[share].slack) + shares_[share].carried * carried;
  }
  size_t count_met(const Peak& peak) const {
    size_t count = 0;
    for (size_t i = 0; i < shares_.size(); ++i) count += met(peak, i);
    return count;
  }
  // Prices between which all of them are met.
  std::pair<double, double> range(Peak peak) const {
    std::pair<double, double> found{peak.least_price(), peak.most_price()};
    for (const double price : price_ladder(peak.least_price(), peak.most_price(), kCoarse)) {
      peak.solve(price);
      const auto count = count_met(peak);
      if (count == 0) found.first = price;
      if (count < shares_.size()) continue;
      found.second = price;
      break;
    }
    return found;
  }

 private:
  const Timetable& timetable_;
  const Limits& limits_;
  std::span<const PeakShares> shares_;
};

}  // namespace

void peak_plans(const Graph& graph, const Timetable& timetable, const Limits& limits, Position at,
                std::span<const float> factors, std::span<const PeakShares> shares,
                const TakePlan& take) {
  Peak peak(graph, timetable, at, factors);
  const Targets targets(timetable, limits, shares);
  const auto [least, most] = targets.range(peak);
  std::vector<char> drafted(shares.size());
  Drafts drafts(graph, timetable, limits, peak);
  for (const double price : price_ladder(least, most, kFine)) {
    peak.solve(price);
    for (size_t i = 0; i < shares.size(); ++i) {
      if (drafted[i] || !targets.met(peak, i)) continue;
      drafted[i] = true;
      drafts.draft({price, shares[i].slack}, take);
    }
  }
}

void peak_plan(const Graph& graph, const Timetable& timetable, const Limits& limits, Position at,
               const PeakChoice& choice, std::span<const float> factors, const TakePlan& take) {
  Peak peak(graph, timetable, at, factors);
  peak.solve(choice.price);
  Drafts(graph, timetable, limits, peak).draft(choice, take);
}

}  // namespace tierpilot::swap
