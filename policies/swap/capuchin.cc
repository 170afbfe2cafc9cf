#include "policies/swap/capuchin.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <span>

#include "policies/swap/rival_plans.h"

namespace tierpilot::swap {
namespace {

class Rule {
 public:
  Rule(const Graph& graph, const Timetable& timetable, const Limits& limits)
      : graph_(graph),
        timetable_(timetable),
        limits_(limits),
        plan_{.absences = std::vector<std::vector<Absence>>(graph.storages.size())},
        presence_(graph.storages.size()),
        seen_(graph.operators.size()) {
    list_presence();
    list_reads();
    const auto all_ns = timetable.start_ns(timetable.end());
    const auto forward_ns = graph.backward == kNone
                                ? all_ns / 2
                                : timetable.start_ns(std::min(graph.backward, timetable.end()));
    link_left_ns_ = std::min(forward_ns, all_ns - forward_ns);
  }

  // One for each saving, which rise: what covers less is what the rule takes first.
  // Those that are found within so many looks at operators.
  std::vector<Plan> plans(std::span<const int64_t> savings, size_t most_looks) {
    savings_ = savings;
    looks_left_ = most_looks;
    list();
    reached();
    if (limits_.link.exists()) swap_in_free_time();
    take_cheapest();
    while (!done()) plans_.push_back(plan_);
    return std::move(plans_);
  }

 private:
  struct Candidate {
    StorageId storage;
    Absence absence;
    int64_t bytes, copies_ns, free_ns;  // free time: between the copy out and the copy back
  };
  struct Offer {
    double cost_per_byte;
    size_t candidate;
    bool operator<(const Offer& other) const {  // the queue's top is the cheapest
      return cost_per_byte != other.cost_per_byte ? cost_per_byte > other.cost_per_byte
                                                  : candidate > other.candidate;
    }
  };

  void list() {
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      const auto bytes = graph_.storages[storage].bytes;
      const auto absence = long_absence(graph_, timetable_, storage);
      if (!absence || bytes == 0) continue;
      const auto gap_ns = timetable_.start_ns(absence->to) -
                          timetable_.start_ns(std::min(absence->from + 1, timetable_.end()));
      const auto copies_ns =
          limits_.link.exists() ? 2 * (limits_.link.copy_ns(bytes) + limits_.link.latency_ns) : 0;
      candidates_.push_back({storage, *absence, bytes, copies_ns, gap_ns - copies_ns});
    }
  }

  void take(const Candidate& candidate, Action action) {
    const auto [from, to, _] = candidate.absence;
    plan_.absences[candidate.storage].push_back({from, to, action});
    covered_bytes_ += candidate.bytes;
    if (action == Action::kSwap) link_left_ns_ -= candidate.copies_ns / 2;
    if (action == Action::kRecompute) {
      presence_[candidate.storage].away_from = from;
      presence_[candidate.storage].away_to = to;
    }
    reached();
  }

  void reached() {
    while (!done() && covered_bytes_ >= savings_[plans_.size()]) plans_.push_back(plan_);
  }
  bool done() const { return plans_.size() == savings_.size() || looks_left_ == 0; }

  void list_presence() {
    for (StorageId storage = 0; storage < presence_.size(); ++storage) {
      const auto& uses = timetable_.uses(storage);
      if (graph_.storages[storage].constant)
        presence_[storage].last = std::numeric_limits<Position>::max();
      else if (!uses.empty())
        presence_[storage].last = uses.back();
    }
  }

  void list_reads() {
    for (const auto& op : graph_.operators) {
      first_read_.push_back(static_cast<uint32_t>(reads_.size()));
      for (const auto arg : op.args)
        reads_.push_back({graph_.tensors[arg].storage, graph_.tensors[arg].maker});
    }
    first_read_.push_back(static_cast<uint32_t>(reads_.size()));
  }

  bool taken(StorageId storage) const { return !plan_.absences[storage].empty(); }

  void swap_in_free_time() {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return static_cast<double>(a.free_ns) /
                 static_cast<double>(std::max<int64_t>(a.copies_ns, 1)) >
             static_cast<double>(b.free_ns) /
                 static_cast<double>(std::max<int64_t>(b.copies_ns, 1));
    });
    for (const auto& candidate : candidates_)
      if (!done() && wait_ns(candidate) == 0) take(candidate, Action::kSwap);
  }

  // A link that is busy for a whole pass hides no more copies.
  int64_t wait_ns(const Candidate& candidate) const {
    if (candidate.copies_ns / 2 > link_left_ns_) return candidate.copies_ns;
    return std::max<int64_t>(-candidate.free_ns, 0);
  }

  // Costs only grow with what is away, so an offer that is still the cheapest now is it. At first
  // each stands with what it costs at least.
  void take_cheapest() {
    std::priority_queue<Offer> offers;
    for (size_t i = 0; i < candidates_.size(); ++i)
      if (!taken(candidates_[i].storage)) offers.push({least_price(candidates_[i]), i});
    while (!done() && !offers.empty()) {
      const auto at = offers.top().candidate;
      offers.pop();
      const double next =
          offers.empty() ? std::numeric_limits<double>::infinity() : offers.top().cost_per_byte;
      const auto [cost, action] = price(candidates_[at], next);
      const Offer now{cost, at};
      if (!offers.empty() && now < offers.top())
        offers.push(now);
      else if (action != Action::kKeep)
        take(candidates_[at], action);
    }
  }

  double least_price(const Candidate& candidate) const {
    const auto bytes = static_cast<double>(candidate.bytes);
    int64_t least_ns = limits_.link.exists() ? wait_ns(candidate) : candidate.free_ns;
    if (!limits_.recompute) return static_cast<double>(least_ns) / bytes;
    int64_t making_ns = 0;
    for (const auto tensor : graph_.storages[candidate.storage].tensors)
      if (const auto& made = graph_.tensors[tensor]; made.owner && made.maker != kNone)
        making_ns += graph_.operators[made.maker].time_ns;
    if (!limits_.link.exists() || making_ns < least_ns) least_ns = making_ns;
    return static_cast<double>(least_ns) / bytes;
  }

  // A cost by byte above `stop` need not be all.
  std::pair<double, Action> price(const Candidate& candidate, double stop) {
    const auto bytes = static_cast<double>(candidate.bytes);
    std::pair<double, Action> best{0, Action::kKeep};
    if (limits_.link.exists())
      best = {static_cast<double>(wait_ns(candidate)) / bytes, Action::kSwap};
    if (!limits_.recompute) return best;
    const auto again = static_cast<double>(recompute_ns(candidate, 2 * stop * bytes)) / bytes;
    if (best.second == Action::kKeep || again < best.first) best = {again, Action::kRecompute};
    return best;
  }

  // Whether the storage is there at `at` without running operators again.
  bool there(StorageId storage, Position at) const {
    const auto& [away_from, away_to, last] = presence_[storage];
    return last >= at && (at < away_from || at >= away_to);
  }

  int64_t recompute_ns(const Candidate& candidate, double stop_ns) {
    ++round_;
    int64_t sum_ns = 0;
    walk_.clear();
    for (const auto tensor : graph_.storages[candidate.storage].tensors)
      if (graph_.tensors[tensor].owner) walk_.push_back(graph_.tensors[tensor].maker);
    while (!walk_.empty() && static_cast<double>(sum_ns) <= stop_ns) {
      const auto op = walk_.back();
      walk_.pop_back();
      if (op == kNone || op >= candidate.absence.to || seen_[op] == round_) continue;
      seen_[op] = round_;
      if (looks_left_ > 0) --looks_left_;
      sum_ns += graph_.operators[op].time_ns;
      for (auto at = first_read_[op]; at < first_read_[op + 1]; ++at) {
        const auto& [storage, maker] = reads_[at];
        if (there(storage, candidate.absence.to)) continue;
        if (maker != kNone && seen_[maker] != round_) walk_.push_back(maker);
      }
    }
    return sum_ns;
  }

  const Graph& graph_;
  const Timetable& timetable_;
  const Limits& limits_;
  std::span<const int64_t> savings_{};
  std::vector<Plan> plans_;  // of the first of them
  Plan plan_;
  int64_t covered_bytes_ = 0;
  size_t looks_left_ = 0;
  int64_t link_left_ns_ = 0;  // of each direction
  std::vector<Candidate> candidates_;
  // Of a storage: when it is recomputed after, and its last use.
  struct Presence {
    Position away_from = 0, away_to = 0, last = 0;
  };
  struct Read {
    StorageId storage;
    OperatorId maker;
  };
  std::vector<Presence> presence_;
  std::vector<Read> reads_;           // by operators, one after the other
  std::vector<uint32_t> first_read_;  // by operator
  std::vector<OperatorId> walk_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
};

}  // namespace

std::vector<Plan> capuchin_plans(const Graph& graph, const Timetable& timetable,
                                 const Limits& limits, size_t most_looks) {
  const auto over = std::max<int64_t>(baseline(graph).peak_bytes - limits.budget_bytes, 0);
  std::vector<int64_t> savings;
  for (const double share : {1.0, 1.15, 1.35, 1.7, 2.5, 1e3})
    savings.push_back(static_cast<int64_t>(std::min(share * static_cast<double>(over), 9e18)));
  return Rule(graph, timetable, limits).plans(savings, most_looks);
}

}  // namespace tierpilot::swap
