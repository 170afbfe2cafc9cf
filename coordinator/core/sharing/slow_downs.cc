#include "coordinator/core/sharing/slow_downs.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot {

using sharing::KeptBy;
using sharing::Sharer;
using sharing::UnitKind;

SlowDowns::SlowDowns(const sharing::JobPredictor* predictor)
    : cores_are_predicted_(predictor != nullptr && predictor->pair_prior() != nullptr),
      interference_(std::make_shared<sharing::Interference>(
          cores_are_predicted_ ? *predictor->pair_prior() : sharing::core_pair_prior(),
          sharing::measured_gpu_prior())) {}

sharing::Retained SlowDowns::retained() const {
  return [interference = interference_](const Sharer& victim, const Sharer& neighbour) {
    return interference->beside(victim, neighbour);
  };
}

SlowDowns::Watched& SlowDowns::watched(uint64_t task, const Sharer& as) {
  return watched_.try_emplace(task, as.on == UnitKind::kCores).first->second;
}

std::map<uint64_t, double> SlowDowns::together(const std::vector<sharing::Neighbour>& running) {
  std::map<uint64_t, double> kept;
  for (const auto& each : running) {
    std::vector<sharing::Neighbour> others;
    std::vector<Sharer> sharers;
    for (const auto& other : running)
      if (other.id != each.id) {
        others.push_back(other);
        sharers.push_back(other.sharer);
      }
    auto& seen = watched(each.id, each.sharer);
    if (!seen.watch.is_beside(others)) {
      seen.windows.restart();
      if (const auto change = seen.watch.beside(std::move(others))) learn(each.sharer, *change);
    }
    kept[each.id] = interference_->beside(each.sharer, sharers).part();
  }
  return kept;
}

void SlowDowns::reported(uint64_t task, const Sharer& as, const JobPoint& report, double now_s) {
  auto& seen = watched(task, as);
  if (const auto pace = seen.windows.add(now_s, report))
    if (const auto change = seen.watch.add(*pace)) learn(as, *change);
}

void SlowDowns::learn(const Sharer& victim, const sharing::PaceChange& change) {
  for (auto& pair : interference_->learn(victim, change)) learned_.push_back(std::move(pair));
}

bool SlowDowns::measures(uint64_t task) const {
  const auto found = watched_.find(task);
  return found != watched_.end() && found->second.watch.measured();
}

std::string SlowDowns::told_by(const Sharer& victim, const sharing::Kept& kept) const {
  const auto times = [&] {
    return kept.measured == 1 ? std::string("once") : fmt::format("{} times", kept.measured);
  };
  switch (kept.by) {
    case KeptBy::kPair:
      return "this pair of names, measured " + times();
    case KeptBy::kOwnEffects:
      return "each of the two beside others, measured " + times();
    case KeptBy::kPrior:
      break;
  }
  if (victim.on == UnitKind::kGpu) return "pairs of trainings on an H100, nothing measured";
  return cores_are_predicted_ ? "trainings of the predictor, nothing measured"
                              : "nothing: no such pair was measured";
}

SlowDown SlowDowns::of(const Sharer& victim, const sharing::Neighbour& neighbour) const {
  const auto kept = interference_->beside(victim, neighbour.sharer);
  return {neighbour.id, neighbour.sharer.name, kept,
          interference_->beside(neighbour.sharer, victim), told_by(victim, kept)};
}

}  // namespace tierpilot
