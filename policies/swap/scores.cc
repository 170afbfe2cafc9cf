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
    : ScoredEviction(graph, score, seed, std::make_unique<const Neighbourhood>(graph)) {}

ScoredEviction::ScoredEviction(const Graph& graph, const Score& score, uint64_t seed,
                               std::unique_ptr<const Neighbourhood> own)
    : ScoredEviction(graph, score, seed, *own) {
  own_near_ = std::move(own);
}

ScoredEviction::ScoredEviction(const Graph& graph, const Score& score, uint64_t seed,
                               const Neighbourhood& near)
    : score_(score), random_(seed), near_(near), bytes_(graph.storages.size(), 1) {
  for (StorageId storage = 0; score.by_size && storage < bytes_.size(); ++storage)
    bytes_[storage] = static_cast<double>(graph.storages[storage].bytes);
  if (score.cost == Cost::kNeighbourhood || score.cost == Cost::kAncestors)
    sums_.emplace(graph, near_, score.cost == Cost::kNeighbourhood);
  if (score.look_ahead) {
    timetable_.emplace(graph);
    next_uses_.resize(graph.storages.size());
  }
  if (score.cost == Cost::kClasses) classes_.emplace(graph, near_);
}

inline double ScoredEviction::least_cost(const Machine& machine, StorageId storage) const {
  if (score_.cost == Cost::kNone) return 1;
  // It is copied back, and makes nothing else dearer.
  if (machine.limits().link.exists() && machine.has_copy(storage))
    return static_cast<double>(
        machine.limits().link.copy_ns(machine.graph().storages[storage].bytes));
  const auto around = classes_ ? classes_->least_around(storage) : 0;
  return static_cast<double>(machine.history().cost_ns(storage) + around);
}

double ScoredEviction::cost(const Machine& machine, StorageId storage, double most) {
  const bool alone = score_.cost == Cost::kNone || score_.cost == Cost::kLocal;
  if (alone || machine.has_copy(storage)) return least_cost(machine, storage);
  const auto own_ns = machine.history().cost_ns(storage);
  const auto around = classes_
                          ? classes_->around(machine, storage)
                          : sums_->around(machine, storage, most - static_cast<double>(own_ns));
  return static_cast<double>(own_ns + around);
}

inline Position ScoredEviction::next_use(StorageId storage) {
  auto& next = next_uses_[storage];
  if (next <= now_) next = timetable_->next_use(storage, now_);
  return next;
}

// `now_ns` is on the program's clock where the score looks ahead, else on the machine's.
inline double ScoredEviction::below(const Machine& machine, StorageId storage, int64_t now_ns) {
  if (!score_.by_staleness) return bytes_[storage];
  const auto away_ns = timetable_ ? timetable_->start_ns(next_use(storage)) - now_ns
                                  : now_ns - machine.history().last_access_ns(storage);
  return bytes_[storage] * static_cast<double>(away_ns);
}

inline bool ScoredEviction::useless(const Machine& machine, StorageId storage) {
  if (score_.unreferenced_first && !machine.history().referenced(storage)) return true;
  return timetable_ && next_use(storage) == kNone;
}

// Of equals the one that became evictable last; a score of 0 ends the search. A cost is summed up
// only where the candidate's own part of it does not rule it out.
StorageId ScoredEviction::victim(const Machine& machine) {
  constexpr double kRounding = 1 + 1e-9;
  StorageId least = kNone;
  double least_value = 0;
  const auto now_ns = timetable_ ? timetable_->start_ns(now_) : machine.clock_ns();
  const auto& evictables = machine.device().evictables();
  for (auto at = evictables.first(); at != kNone; at = evictables.next(at)) {
    if (useless(machine, at)) return at;
    if (--looks_left_ < 0) return kNone;
    const double factor = bias_ ? (*bias_)[at] : 1;
    double now = 0;
    if (score_.random) {
      now = random_.unit();
    } else if (orders_by_access()) {
      // Staleness alone is an order, not a quotient: 1 / s would give every fresh storage infinity.
      now = static_cast<double>(machine.history().last_access_ns(at));
    } else {
      constexpr auto kInfinity = std::numeric_limits<double>::infinity();
      const double under = below(machine, at, now_ns);
      const double most = least == kNone ? kInfinity : least_value * under * kRounding / factor;
      if (least_cost(machine, at) > most) continue;
      now = under == 0 ? kInfinity : cost(machine, at, most) / under;
    }
    now *= factor;
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
