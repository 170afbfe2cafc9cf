#include "policies/swap/cover.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tierpilot::swap {

namespace {
constexpr Position kSamples = 48;    // of a gap's positions, when its worth is estimated
constexpr size_t kMostWalked = 400;  // operators of one recomputation that are looked at
// After so many in all, where graphs are large and recomputations long, fewer of each.
constexpr size_t kManyWalked = 1'000'000, kFewWalked = 24;
constexpr size_t kMostOffers = 80'000;  // in a hurry
constexpr double kLeastCost = 1;        // ns: what is free is still not taken for nothing
constexpr double kCannot = 1e300;       // ns
// Of a copy without a time on the link, each way: the step waits for it.
constexpr double kWaited = 2;
constexpr double kAhead = 2;  // times the next one's ratio, to where an offer is worked out
}  // namespace

bool Cover::Candidate::operator<(const Candidate& other) const {
  if (ratio != other.ratio) return ratio > other.ratio;
  return std::tie(storage, from) > std::tie(other.storage, other.from);
}

Cover::Cover(const Graph& graph, const Timetable& timetable, const CoverSettings& settings)
    : graph_(graph),
      timetable_(timetable),
      settings_(settings),
      calendar_(timetable, settings.link),
      gaps_(graph.storages.size()),
      recomputed_(graph.storages.size()),
      held_(graph.storages.size()),
      last_use_(graph.storages.size()),
      seen_operator_(graph.operators.size()),
      seen_storage_(graph.storages.size()) {
  for (StorageId storage = 0; storage < last_use_.size(); ++storage)
    if (const auto& uses = timetable.uses(storage); !uses.empty()) last_use_[storage] = uses.back();
}

void Cover::count_deficit() {
  const auto positions = timetable_.end() + 1;
  std::vector<int64_t> change(positions + 1);
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
    const auto& uses = timetable_.uses(storage);
    if (graph_.storages[storage].constant || uses.empty()) continue;
    change[uses.front()] += graph_.storages[storage].bytes;
    change[uses.back() + 1] -= graph_.storages[storage].bytes;
  }
  deficit_.resize(positions);
  int64_t alive = 0;
  for (Position at = 0; at < positions; ++at) {
    alive += change[at];
    deficit_[at] = alive + timetable_.constant_bytes(at) - settings_.budget_bytes;
  }
}

Plan Cover::plan(const Plan& begun) {
  count_deficit();
  size_t gaps = 0;
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
    if (graph_.storages[storage].constant) continue;
    const auto& uses = timetable_.uses(storage);
    for (size_t i = 1; i < uses.size(); ++i) {
      gaps_[storage].push_back({uses[i - 1], uses[i]});
      ++gaps;
      propose(storage, gaps_[storage].back());
    }
  }
  begin_with(begun);
  // Where many are taken they are pieces of a position or two, and what is recomputed for each
  // takes longer than any other plan: covers that get through take a third at most.
  const size_t most = settings_.hurried ? gaps / 2 + 1 : kNone;
  const size_t most_offers = settings_.hurried ? kMostOffers : kNone;
  for (size_t taken = 0;
       taken < most && offers_ < most_offers && !queue_.empty() && !satisfied();) {
    const auto top = queue_.top();
    queue_.pop();
    auto* gap = find(top.storage, top.from + 1);
    if (!gap || gap->from != top.from || gap->to != top.to || gap->action != Action::kKeep)
      continue;
    const double next = queue_.empty() ? kCannot : queue_.top().ratio * settings_.tie;
    const auto now = offer(top.storage, *gap, settings_.hurried ? next * kAhead : kCannot);
    if (now.cost >= kCannot) continue;
    if (now.ratio > next)
      queue_.push({now.ratio, top.storage, top.from, top.to});
    else
      take(top.storage, *gap, now.way), ++taken;
  }
  prune();
  Plan plan{.absences = std::vector<std::vector<Absence>>(graph_.storages.size())};
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
    for (const auto& gap : gaps_[storage])
      if (gap.action != Action::kKeep)
        plan.absences[storage].push_back({gap.from, gap.to, gap.action});
  return plan;
}

void Cover::begin_with(const Plan& begun) {
  for (StorageId storage = 0; storage < begun.absences.size(); ++storage)
    for (const auto& [from, to, action] : begun.absences[storage]) {
      const auto* around = find(storage, from + 1);
      if (around && to < around->to) split(storage, to);
      auto* gap = find(storage, from + 1);
      if (!gap || gap->action != Action::kKeep) continue;
      Way chosen{.gap = {.from = gap->from, .to = gap->to, .action = action}};
      if (action == Action::kSwap)
        chosen.trip = calendar_.find(gap->from, gap->to, graph_.storages[storage].bytes);
      take(storage, *gap, chosen);
    }
}

bool Cover::satisfied() {
  while (worst_ < deficit_.size() && deficit_[worst_] <= 0) ++worst_;
  return worst_ == deficit_.size();
}

void Cover::propose(StorageId storage, const Gap& gap) {
  if (gap.to - gap.from < 2) return;
  const auto now = offer(storage, gap, settings_.hurried ? 0 : kCannot);
  if (now.cost < kCannot) queue_.push({now.ratio, storage, gap.from, gap.to});
}

// The gap around or from `at`.
Cover::Gap* Cover::find(StorageId storage, Position at) {
  auto& gaps = gaps_[storage];
  const auto after = std::upper_bound(gaps.begin(), gaps.end(), at,
                                      [](Position p, const Gap& gap) { return p <= gap.from; });
  if (after == gaps.begin()) return nullptr;
  auto& gap = *std::prev(after);
  return at <= gap.to ? &gap : nullptr;
}

Position Cover::away_from(const Gap& gap) const {
  return gap.trip == kNone ? gap.from + 1 : trips_[gap.trip].away_from;
}

Position Cover::back_at(const Gap& gap) const {
  return gap.trip == kNone ? gap.to : trips_[gap.trip].back_at;
}

double Cover::covered(StorageId storage, Position first, Position to) const {
  if (first >= to) return 0;
  const auto step = std::max<Position>(1, (to - first) / kSamples);
  int64_t sum = 0;
  for (Position at = first; at < to; at += step)
    sum += std::clamp<int64_t>(deficit_[at], 0, graph_.storages[storage].bytes);
  return static_cast<double>(sum) * step;
}

double Cover::bias(StorageId storage) const {
  return settings_.bias.empty() ? 1 : settings_.bias[storage];
}

// Of a gap as it is.
double Cover::cost(StorageId storage, const Gap& gap) {
  if (gap.action == Action::kRecompute)
    return recompute_ns(storage, gap.to, kCannot) * bias(storage);
  const auto copy_ns = static_cast<double>(settings_.link.copy_ns(graph_.storages[storage].bytes));
  const bool waited = settings_.on_time && gap.trip == kNone;
  return copy_ns * (waited ? kWaited : settings_.link_price) * bias(storage);
}

Cover::Offer Cover::offer(StorageId storage, const Gap& gap, double stop) {
  ++offers_;
  Offer best{.cost = kCannot, .ratio = kCannot, .way = {}};
  const auto consider = [&](double cost_ns, double worth, Way&& way) {
    const double cost = std::max(cost_ns, kLeastCost) * bias(storage);
    if (worth > 0 && cost < kCannot && cost / worth < best.ratio)
      best = {cost, cost / worth, std::move(way)};
  };
  Way way{.gap = {.from = gap.from, .to = gap.to, .action = Action::kRecompute}};
  const double whole = covered(storage, gap.from + 1, gap.to);
  if (settings_.recompute) {
    const double stop_ns = stop * whole / bias(storage);
    consider(recompute_ns(storage, gap.to, stop_ns), whole, Way(way));
    if (settings_.hold && walked_dead_) {
      way.gap.holds = true;
      const double again_ns = recompute_ns(storage, gap.to, stop_ns, true);
      consider(again_ns, covered_holding(storage, gap), Way(way));
    }
  }
  if (settings_.link.exists()) {
    const auto bytes = graph_.storages[storage].bytes;
    const auto copy_ns = static_cast<double>(settings_.link.copy_ns(bytes));
    way.gap = {.from = gap.from, .to = gap.to, .action = Action::kSwap};
    consider((settings_.on_time ? kWaited : settings_.link_price) * copy_ns, whole, Way(way));
    if (settings_.on_time) way.trip = calendar_.find(gap.from, gap.to, bytes);
    if (way.trip) {
      const double worth = covered(storage, way.trip->away_from, way.trip->back_at);
      consider(settings_.link_price * copy_ns, worth, std::move(way));
    }
  }
  return best;
}

void Cover::need(TensorId tensor, Position, double weight) {
  const auto maker = graph_.tensors[tensor].maker;
  if (maker == kNone || std::exchange(seen_operator_[maker], round_) == round_) return;
  walk_.push_back({tensor, weight});
}

double Cover::recompute_ns(StorageId storage, Position to, double stop_ns, bool holds) {
  ++round_;
  walk_.clear();
  ancestors_.clear();
  dead_.clear();
  walked_dead_ = false;
  if (to == timetable_.end()) {
    for (const auto tensor : graph_.storages[storage].tensors) need(tensor, to, 1);
  } else {
    for (const auto arg : graph_.operators[to].args)
      if (graph_.tensors[arg].storage == storage) need(arg, to, 1);
  }
  // What only recomputing asks for is none of them.
  if (walk_.empty() && settings_.hold) need(graph_.storages[storage].tensors.front(), to, 1);
  double total = 0;
  const size_t most = settings_.hurried && walked_ > kManyWalked ? kFewWalked : kMostWalked;
  for (size_t i = 0; i < walk_.size() && i < most && total <= stop_ns; ++i) {
    ++walked_;
    const auto [tensor, weight] = walk_[i];
    const auto& op = graph_.operators[graph_.tensors[tensor].maker];
    total += weight * static_cast<double>(op.time_ns);
    for (const auto arg : op.args) {
      const auto near = graph_.tensors[arg].storage;
      if (graph_.storages[near].constant) continue;
      if (near == storage) {
        need(arg, to, weight);
        continue;
      }
      if (to > last_use_[near]) {
        walked_dead_ = true;
        if (!holds)
          need(arg, to, weight);
        else if (std::exchange(seen_storage_[near], round_) != round_)
          dead_.push_back(near);
        continue;
      }
      if (std::exchange(seen_storage_[near], round_) != round_) ancestors_.push_back(near);
      if (recomputed_[near] == 0) continue;
      const auto* gap = find(near, to);
      if (!gap || gap->action != Action::kRecompute) continue;
      if (gap->to != to) need(arg, to, weight * settings_.shared_cost);
    }
  }
  return total;
}

void Cover::add(Position from, Position to, int64_t bytes) {
  for (Position at = from; at < to; ++at) deficit_[at] += bytes;
  if (bytes > 0) worst_ = std::min(worst_, from);
}

void Cover::take(StorageId storage, Gap& gap, const Way& chosen) {
  const auto bytes = graph_.storages[storage].bytes;
  gap = chosen.gap;
  if (chosen.trip) {
    gap.trip = static_cast<uint32_t>(trips_.size());
    trips_.push_back(*chosen.trip);
    calendar_.take(*chosen.trip);
  }
  const auto to = gap.to;
  add(away_from(gap), back_at(gap), -bytes);
  if (gap.action != Action::kRecompute) return;
  ++recomputed_[storage];
  recompute_ns(storage, to, kCannot, chosen.gap.holds);
  const auto ancestors = ancestors_, dead = dead_;
  for (const auto near : dead) hold(near, to);
  for (const auto near : ancestors) split(near, to);
}

double Cover::covered_holding(StorageId storage, const Gap& gap) const {
  const Position first = gap.from + 1, to = gap.to;
  Position begin = first;
  for (const auto near : dead_) begin = std::min(begin, last_use_[near] + 1);
  const auto step = std::max<Position>(1, (to - begin) / kSamples);
  int64_t sum = 0;
  for (Position at = begin; at < to; at += step) {
    int64_t more = at >= first ? -graph_.storages[storage].bytes : 0;
    for (const auto near : dead_)
      if (at > last_use_[near]) more += graph_.storages[near].bytes;
    sum += std::max<int64_t>(deficit_[at], 0) - std::max<int64_t>(deficit_[at] + more, 0);
  }
  return static_cast<double>(sum) * step;
}

void Cover::hold(StorageId storage, Position to) {
  const auto from = std::exchange(last_use_[storage], to);
  add(from + 1, to + 1, graph_.storages[storage].bytes);
  held_[storage].push_back(to);
  gaps_[storage].push_back({from, to});
}

Timetable Cover::timetable() const {
  auto timetable = timetable_;
  for (StorageId storage = 0; storage < held_.size(); ++storage)
    timetable.also_used(storage, held_[storage]);
  return timetable;
}

// It stays after all.
void Cover::give_up(StorageId storage, Gap& gap) {
  const auto bytes = graph_.storages[storage].bytes;
  add(away_from(gap), back_at(gap), bytes);
  if (gap.trip != kNone) calendar_.release(trips_[gap.trip]);
  if (gap.action == Action::kRecompute) --recomputed_[storage];
  gap = {.from = gap.from, .to = gap.to};
}

void Cover::prune() {
  std::vector<std::pair<double, std::pair<StorageId, Position>>> taken;
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
    for (const auto& gap : gaps_[storage])
      if (gap.action != Action::kKeep) taken.push_back({-cost(storage, gap), {storage, gap.from}});
  std::sort(taken.begin(), taken.end());
  for (const auto& [_, at] : taken) {
    const auto [storage, from] = at;
    auto& gap = *find(storage, from + 1);
    const auto bytes = graph_.storages[storage].bytes;
    const auto begin = deficit_.begin() + away_from(gap), end = deficit_.begin() + back_at(gap);
    if (std::any_of(begin, end, [bytes](int64_t deficit) { return deficit + bytes > 0; })) continue;
    give_up(storage, gap);
  }
}

// One more use of the storage: it is back from here to the end of the gap around it.
void Cover::split(StorageId storage, Position at) {
  auto* gap = find(storage, at);
  if (!gap || at >= gap->to) return;
  // Its way back was planned for a later use.
  if (gap->action == Action::kSwap) give_up(storage, *gap);
  const Gap late{.from = at, .to = gap->to};
  if (gap->action != Action::kKeep) add(at, gap->to, graph_.storages[storage].bytes);
  gap->to = at;
  const Gap early = *gap;
  gaps_[storage].insert(gaps_[storage].begin() + (gap - gaps_[storage].data()) + 1, late);
  if (early.action == Action::kKeep) propose(storage, early);
  propose(storage, late);
}

}  // namespace tierpilot::swap
