#include "policies/swap/cover.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tierpilot::swap {

namespace {
constexpr Position kSamples = 48;    // of a gap's positions, when its worth is estimated
constexpr size_t kMostWalked = 400;  // operators of one recomputation that are looked at
constexpr double kLeastCost = 1;     // ns: what is free is still not taken for nothing
constexpr double kCannot = 1e300;    // ns
}  // namespace

bool Cover::Candidate::operator<(const Candidate& other) const {
  if (ratio != other.ratio) return ratio > other.ratio;
  return std::tie(storage, from) > std::tie(other.storage, other.from);
}

Cover::Cover(const Graph& graph, const Timetable& timetable, const CoverSettings& settings)
    : graph_(graph),
      timetable_(timetable),
      settings_(settings),
      gaps_(graph.storages.size()),
      seen_operator_(graph.operators.size()),
      seen_storage_(graph.storages.size()) {}

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

Plan Cover::plan() {
  count_deficit();
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
    if (graph_.storages[storage].constant) continue;
    const auto& uses = timetable_.uses(storage);
    for (size_t i = 1; i < uses.size(); ++i) {
      gaps_[storage].push_back({uses[i - 1], uses[i]});
      offer(storage, gaps_[storage].back());
    }
  }
  while (!queue_.empty() && !satisfied()) {
    const auto top = queue_.top();
    queue_.pop();
    auto* gap = find(top.storage, top.from + 1);
    if (!gap || gap->from != top.from || gap->to != top.to || gap->action != Action::kKeep)
      continue;
    const auto worth = covered(top.storage, gap->from, gap->to);
    if (worth <= 0) continue;
    const auto [cost, action] = price(top.storage, gap->to);
    const double ratio = cost / worth;
    if (!queue_.empty() && ratio > queue_.top().ratio * 1.0001)
      queue_.push({ratio, top.storage, top.from, top.to});
    else
      take(top.storage, *gap, action);
  }
  prune();
  Plan plan{.absences = std::vector<std::vector<Absence>>(graph_.storages.size())};
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
    for (const auto& gap : gaps_[storage])
      if (gap.action != Action::kKeep)
        plan.absences[storage].push_back({gap.from, gap.to, gap.action});
  return plan;
}

bool Cover::satisfied() {
  while (worst_ < deficit_.size() && deficit_[worst_] <= 0) ++worst_;
  return worst_ == deficit_.size();
}

void Cover::offer(StorageId storage, const Gap& gap) {
  if (gap.to - gap.from < 2) return;
  const auto worth = covered(storage, gap.from, gap.to);
  if (worth <= 0) return;
  const auto cost = price(storage, gap.to).cost;
  if (cost < kCannot) queue_.push({cost / worth, storage, gap.from, gap.to});
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

double Cover::covered(StorageId storage, Position from, Position to) const {
  const Position first = from + 1, step = std::max<Position>(1, (to - first) / kSamples);
  int64_t sum = 0;
  for (Position at = first; at < to; at += step)
    sum += std::clamp<int64_t>(deficit_[at], 0, graph_.storages[storage].bytes);
  return static_cast<double>(sum) * step;
}

Cover::Price Cover::price(StorageId storage, Position to) {
  double cost = kCannot;
  auto action = Action::kRecompute;
  if (settings_.recompute) cost = std::max(recompute_ns(storage, to), kLeastCost);
  if (settings_.link.exists()) {
    const double copying =
        settings_.link_price *
        static_cast<double>(settings_.link.copy_ns(graph_.storages[storage].bytes));
    if (copying < cost) {
      cost = copying;
      action = Action::kSwap;
    }
  }
  if (!settings_.bias.empty()) cost *= settings_.bias[storage];
  return {cost, action};
}

void Cover::need(TensorId tensor, Position, double weight) {
  const auto maker = graph_.tensors[tensor].maker;
  if (maker == kNone || std::exchange(seen_operator_[maker], round_) == round_) return;
  walk_.push_back({tensor, weight});
}

double Cover::recompute_ns(StorageId storage, Position to) {
  ++round_;
  walk_.clear();
  ancestors_.clear();
  if (to == timetable_.end()) {
    for (const auto tensor : graph_.storages[storage].tensors) need(tensor, to, 1);
  } else {
    for (const auto arg : graph_.operators[to].args)
      if (graph_.tensors[arg].storage == storage) need(arg, to, 1);
  }
  double total = 0;
  for (size_t i = 0; i < walk_.size() && i < kMostWalked; ++i) {
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
      const auto& uses = timetable_.uses(near);
      if (to > uses.back()) {
        need(arg, to, weight);  // dead by then
        continue;
      }
      if (std::exchange(seen_storage_[near], round_) != round_) ancestors_.push_back(near);
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

void Cover::take(StorageId storage, Gap& gap, Action action) {
  gap.action = action;
  const auto to = gap.to;
  add(gap.from + 1, to, -graph_.storages[storage].bytes);
  if (action != Action::kRecompute) return;
  recompute_ns(storage, to);
  const auto ancestors = ancestors_;
  for (const auto near : ancestors) split(near, to);
}

void Cover::prune() {
  std::vector<std::pair<double, std::pair<StorageId, Position>>> taken;
  for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
    for (const auto& gap : gaps_[storage])
      if (gap.action != Action::kKeep)
        taken.push_back({-price(storage, gap.to).cost, {storage, gap.from}});
  std::sort(taken.begin(), taken.end());
  for (const auto& [_, at] : taken) {
    const auto [storage, from] = at;
    auto& gap = *find(storage, from + 1);
    const auto bytes = graph_.storages[storage].bytes;
    const auto begin = deficit_.begin() + gap.from + 1, end = deficit_.begin() + gap.to;
    if (std::any_of(begin, end, [bytes](int64_t deficit) { return deficit + bytes > 0; })) continue;
    add(gap.from + 1, gap.to, bytes);
    gap.action = Action::kKeep;
  }
}

// One more use of the storage: it is back from here to the end of the gap around it.
void Cover::split(StorageId storage, Position at) {
  auto* gap = find(storage, at);
  if (!gap || at >= gap->to) return;
  const Gap late{at, gap->to, Action::kKeep};
  if (gap->action != Action::kKeep) add(at, gap->to, graph_.storages[storage].bytes);
  gap->to = at;
  const Gap early = *gap;
  gaps_[storage].insert(gaps_[storage].begin() + (gap - gaps_[storage].data()) + 1, late);
  if (early.action == Action::kKeep) offer(storage, early);
  offer(storage, late);
}

}  // namespace tierpilot::swap
