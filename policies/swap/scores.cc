#include "policies/swap/scores.h"

namespace tierpilot::swap {

using Cost = Score::Cost;

std::span<const NamedScore> rival_scores() {
  static constexpr NamedScore scores[]{
      {"h_DTR", {Cost::kNeighbourhood, true, true}},
      {"h_DTR_eq", {Cost::kClasses, true, true}},
      {"h_DTR_local", {Cost::kLocal, true, true}},
      {"h_LRU", {Cost::kNone, false, true}},
      {"h_size", {Cost::kNone, true, false}},
      {"h_MSPS", {Cost::kAncestors, true, false}},
      {"h_rand", {.random = true}},
  };
  return scores;
}

std::span<const NamedScore> own_scores() {
  static constexpr NamedScore scores[]{
      {"swap-online", {Cost::kClasses, true, true, false, true}},
      {"classes-ahead", {Cost::kClasses, true, true, false, true, true}},
      {"ancestors", {Cost::kAncestors, true, true, false, true}},
      {"ancestors-ahead", {Cost::kAncestors, true, true, false, true, true}},
      {"neighbourhood", {Cost::kNeighbourhood, true, true, false, true}},
      {"neighbourhood-ahead", {Cost::kNeighbourhood, true, true, false, true, true}},
      {"ancestors-by-size", {Cost::kAncestors, true, false, false, true}},
  };
  return scores;
}

std::optional<Score> score_by_name(std::string_view name) {
  for (const auto list : {rival_scores(), own_scores()})
    for (const auto& [known, score] : list)
      if (known == name) return score;
  return std::nullopt;
}

ScoredEviction::ScoredEviction(const Graph& graph, const Score& score, uint64_t seed)
    : score_(score), random_(seed), near_(graph) {
  if (score.cost == Cost::kNeighbourhood || score.cost == Cost::kAncestors)
    sums_.emplace(graph, near_, score.cost == Cost::kNeighbourhood);
  if (score.look_ahead) timetable_.emplace(graph);
  if (score.cost == Cost::kClasses) classes_.emplace(graph, near_);
}

double ScoredEviction::cost(const Machine& machine, StorageId storage) {
  // It is copied back, and makes nothing else dearer.
  if (score_.cost != Cost::kNone && machine.has_copy(storage))
    return static_cast<double>(
        machine.limits().link.copy_ns(machine.graph().storages[storage].bytes));
  switch (score_.cost) {
    case Cost::kNeighbourhood:
    case Cost::kAncestors:
      return static_cast<double>(machine.history().cost_ns(storage) +
                                 sums_->around(machine, storage));
    case Cost::kClasses:
      return static_cast<double>(machine.history().cost_ns(storage) +
                                 classes_->around(machine, storage));
    case Cost::kLocal:
      return static_cast<double>(machine.history().cost_ns(storage));
    case Cost::kNone:
      break;
  }
  return 1;
}

double ScoredEviction::value(const Machine& machine, StorageId storage) {
  if (score_.random) return random_.unit();
  // Staleness alone is an order, not a quotient: 1 / s would give every fresh storage infinity.
  if (score_.cost == Cost::kNone && !score_.by_size)
    return static_cast<double>(machine.history().last_access_ns(storage));
  double below = 1;
  if (score_.by_size) below *= static_cast<double>(machine.graph().storages[storage].bytes);
  if (score_.by_staleness && timetable_)
    below *= static_cast<double>(timetable_->start_ns(timetable_->next_use(storage, now_)) -
                                 timetable_->start_ns(now_));
  else if (score_.by_staleness)
    below *= static_cast<double>(machine.clock_ns() - machine.history().last_access_ns(storage));
  return below == 0 ? std::numeric_limits<double>::infinity() : cost(machine, storage) / below;
}

bool ScoredEviction::useless(const Machine& machine, StorageId storage) const {
  if (score_.unreferenced_first && !machine.history().referenced(storage)) return true;
  return timetable_ && timetable_->next_use(storage, now_) == kNone;
}

// Of equals the one that became evictable last; a score of 0 ends the search.
StorageId ScoredEviction::victim(const Machine& machine) {
  StorageId least = kNone;
  double least_value = 0;
  const auto& evictables = machine.device().evictables();
  for (auto at = evictables.first(); at != kNone; at = evictables.next(at)) {
    if (useless(machine, at)) return at;
    const double now = value(machine, at) * (bias_ ? (*bias_)[at] : 1);
    if (least != kNone && now > least_value) continue;
    least = at;
    least_value = now;
    if (now == 0) break;
  }
  return least;
}

bool ScoredEviction::make_room(Machine& machine, int64_t bytes) {
  while (!machine.device().fits(bytes)) {
    const auto storage = victim(machine);
    if (storage == kNone) return false;
    machine.drop(storage);
  }
  return true;
}

void ScoredEviction::left(Machine& machine, StorageId storage) {
  if (classes_) classes_->left(machine, storage);
  if (sums_) sums_->changed(machine, storage);
}

void ScoredEviction::arrived(Machine& machine, StorageId storage) {
  if (classes_) classes_->arrived(machine, storage);
  if (sums_) sums_->changed(machine, storage);
}

// A new view makes its storage a neighbour of the operator's other arguments.
void ScoredEviction::after(Machine& machine, OperatorId op) {
  if (!sums_) return;
  for (const auto output : machine.graph().operators[op].outputs)
    if (const auto& tensor = machine.graph().tensors[output]; !tensor.owner)
      sums_->changed(machine, tensor.storage);
}

}  // namespace tierpilot::swap
