#include "policies/swap/bound/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "policies/swap/bound/peak.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {
namespace {

class Bound {
 public:
  Bound(const Graph& graph, const Timetable& timetable, const Limits& limits)
      : graph_(graph), limits_(limits), timetable_(timetable), at_once_(timetable_.end() + 1) {
    for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
      if (!graph.storages[storage].constant)
        for (const auto use : timetable_.uses(storage))
          at_once_[use] += graph.storages[storage].bytes;
  }

  // Where even what it uses itself does not fit.
  std::optional<std::string> impossible() const {
    Position worst = 0;
    for (Position at = 0; at <= timetable_.end(); ++at)
      if (needs(at) > needs(worst)) worst = at;
    if (needs(worst) <= limits_.budget_bytes) return std::nullopt;
    const auto what = worst == timetable_.end()
                          ? std::string("the end of the step")
                          : fmt::format("operator {} '{}'", worst, graph_.operators[worst].name);
    return fmt::format(
        "no policy can get through: {} needs {} bytes at once ({} of them constants), which is {} "
        "more than the budget",
        what, needs(worst), timetable_.constant_bytes(worst), needs(worst) - limits_.budget_bytes);
  }

  // ns beyond the operators' own time.
  double least_more_ns() {
    const auto [at, more_ns] = tightest();
    if (at == kNone) return 0;
    if (graph_.operators.size() > kMostCutOperators) return more_ns;
    return std::max(more_ns, least_with_ancestors_ns(at));
  }

  struct Tightest {
    Position at = kNone;
    double more_ns = 0;
  };
  Tightest tightest() {
    Tightest found;
    // Some points of a large step say nearly what all do.
    const Position stride = timetable_.end() / kMostPoints + 1;
    for (Position at = 0; at <= timetable_.end(); at += stride) {
      const auto over = over_budget(at);
      if (over <= 0 || static_cast<double>(over) <= carried(at, found.more_ns)) continue;
      collect(at);
      const auto short_ns = [&](double more_ns) {
        return again_ns(static_cast<double>(over) - carried(at, more_ns)) - more_ns;
      };
      if (short_ns(found.more_ns) <= 0) continue;
      found = {at, root(short_ns, found.more_ns, again_ns(static_cast<double>(over)))};
    }
    return found;
  }

 private:
  // Where what is short falls to nothing: the more time there is, the more is carried and the less
  // is made again.
  template <class Short>
  static double root(const Short& short_ns, double low, double high) {
    constexpr int kHalvings = 40;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (short_ns(middle) > 0 ? low : high) = middle;
    }
    return low;
  }

  struct Item {
    double time_ns, bytes;
  };

  int64_t needs(Position at) const { return at_once_[at] + timetable_.constant_bytes(at); }

  // Of what the program uses before and after, or now.
  int64_t over_budget(Position at) {
    if (alive_.empty()) count_alive();
    return alive_[at] + timetable_.constant_bytes(at) - limits_.budget_bytes;
  }

  void count_alive() {
    alive_.resize(timetable_.end() + 2);
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      const auto& uses = timetable_.uses(storage);
      if (graph_.storages[storage].constant || uses.empty()) continue;
      alive_[uses.front()] += graph_.storages[storage].bytes;
      alive_[uses.back() + 1] -= graph_.storages[storage].bytes;
    }
    for (size_t at = 1; at < alive_.size(); ++at) alive_[at] += alive_[at - 1];
  }

  double carried(Position at, double more_ns) const {
    return carried_bytes(timetable_, limits_.link, at, more_ns);
  }

  static constexpr size_t kRungs = 200;
  static constexpr Position kMostPoints = 5'000;

  // With all that recomputing needs, at one point.
  double least_with_ancestors_ns(Position at) const {
    Peak peak(graph_, timetable_, at);
    const auto room = static_cast<double>(limits_.budget_bytes - peak.fixed_bytes());
    double most_ns = 0;
    for (const double price : price_ladder(peak.least_price(), peak.most_price(), kRungs)) {
      if (price > dearest_price(limits_.link)) break;
      const auto cost = static_cast<double>(peak.solve(price));
      const auto short_ns = [&](double more_ns) {
        return cost - price * (room + carried(at, more_ns)) - more_ns;
      };
      if (short_ns(most_ns) <= 0) continue;
      most_ns = root(short_ns, most_ns, cost);
    }
    return most_ns;
  }

  // What can be away while `at` runs, by its makers, cheapest by byte first.
  void collect(Position at) {
    made_.assign(graph_.operators.size(), 0);
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      const auto& uses = timetable_.uses(storage);
      if (graph_.storages[storage].constant || uses.empty()) continue;
      if (uses.front() >= at || uses.back() <= at) continue;
      if (std::binary_search(uses.begin(), uses.end(), at)) continue;
      made_[graph_.tensors[graph_.storages[storage].tensors.front()].maker] +=
          static_cast<double>(graph_.storages[storage].bytes);
    }
    items_.clear();
    for (OperatorId op = 0; op < made_.size(); ++op)
      if (made_[op] > 0)
        items_.push_back({static_cast<double>(graph_.operators[op].time_ns), made_[op]});
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return a.time_ns * b.bytes < b.time_ns * a.bytes;
    });
  }

  double again_ns(double bytes) const {
    double sum_ns = 0;
    for (const auto& item : items_) {
      if (bytes <= 0) break;
      const double all_ns = std::min(item.time_ns, item.bytes * dearest_price(limits_.link));
      sum_ns += all_ns * std::min(1.0, bytes / item.bytes);
      bytes -= item.bytes;
    }
    return sum_ns;
  }

  const Graph& graph_;
  const Limits& limits_;
  const Timetable& timetable_;
  std::vector<int64_t> at_once_;  // bytes of what the program uses there, without constants
  std::vector<int64_t> alive_;
  std::vector<double> made_;
  std::vector<Item> items_;
};

}  // namespace

Outcome bound(const Graph& graph, const Limits& limits) {
  Outcome outcome;
  for (const auto& op : graph.operators) outcome.base_time_ns += op.time_ns;
  const Timetable timetable(graph);
  Bound bound(graph, timetable, limits);
  if (auto reason = bound.impossible()) {
    outcome.reason = std::move(*reason);
    return outcome;
  }
  const auto more_ns = static_cast<int64_t>(bound.least_more_ns());
  outcome.clock_ns = 1 + outcome.base_time_ns + more_ns;
  outcome.done = true;
  return outcome;
}

std::optional<std::string> impossible(const Graph& graph, const Limits& limits) {
  const Timetable timetable(graph);
  return Bound(graph, timetable, limits).impossible();
}

Position tightest(const Graph& graph, const Timetable& timetable, const Limits& limits) {
  return Bound(graph, timetable, limits).tightest().at;
}

}  // namespace tierpilot::swap
