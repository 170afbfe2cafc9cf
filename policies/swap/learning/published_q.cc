#include "policies/swap/learning/published_q.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tierpilot::swap {

namespace {
constexpr size_t kMostPairs = 1'000'000;  // the states are all plans: more and all are forgotten
}

PublishedQ::PublishedQ(const std::vector<uint32_t>& kinds, std::vector<char> plan,
                       const PublishedSettings& settings)
    : settings_(settings), plan_(std::move(plan)), random_(settings.seed) {
  std::unordered_map<uint32_t, uint32_t> types;
  for (const auto kind : kinds)
    type_of_.push_back(types.emplace(kind, static_cast<uint32_t>(types.size())).first->second);
  types_ = static_cast<uint32_t>(types.size());
  plan_.resize(type_of_.size());
}

double PublishedQ::reward(double time, double memory) const {
  return time + settings_.w * (memory - time);
}

uint64_t PublishedQ::state() const {
  uint64_t hash = 1;
  for (const char leaves : plan_) hash = mixed_bits(hash * 2 + (leaves ? 1 : 0));
  return hash;
}

uint64_t PublishedQ::pair(uint64_t state, const Action& action) const {
  return mixed_bits(state ^ (uint64_t{action.kind} * 2 + (action.leaves ? 1 : 0) + 1)) | 1;
}

double PublishedQ::value(uint64_t pair) const {
  const auto found = q_.find(pair);
  return found == q_.end() ? 0 : found->second;
}

// Ties are broken by chance: pairs that were never tried are all at 0, below any that was.
PublishedQ::Action PublishedQ::choose() {
  const auto any = [&] {
    return Action{static_cast<uint32_t>(random_.below(types_)), random_.below(2) == 1};
  };
  constexpr uint64_t kScale = 1'000'000;
  if (static_cast<double>(random_.below(kScale)) < settings_.epsilon * kScale) return any();
  const auto here = state();
  double least = std::numeric_limits<double>::infinity();
  std::vector<Action> best;
  for (uint32_t kind = 0; kind < types_; ++kind)
    for (const bool leaves : {false, true}) {
      const Action action{kind, leaves};
      const auto q = value(pair(here, action));
      if (q > least) continue;
      if (q < least) best.clear();
      least = q;
      best.push_back(action);
    }
  return best[random_.below(best.size())];
}

void PublishedQ::end_round(double time, double memory) {
  if (types_ == 0) return;
  if (q_.size() >= kMostPairs) q_.clear();
  const auto action = choose();
  const auto next = pair(state(), action);
  if (last_ != 0) {
    auto& q = q_[last_];
    q += settings_.alpha * (reward(time, memory) + settings_.gamma * value(next) - q);
  }
  last_ = next;
  for (size_t i = 0; i < plan_.size(); ++i)
    if (type_of_[i] == action.kind) plan_[i] = action.leaves;
}

}  // namespace tierpilot::swap
