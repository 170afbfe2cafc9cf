#include "policies/sharing/interference/pair_effects.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tierpilot::sharing {
namespace {

constexpr double kUsual = 2.5;       // standard deviations, beyond which a measurement counts less
constexpr double kMostWeight = 1e4;  // of a pair, some ten measurements: older ones fade
constexpr double kMostKeptLn = 10;   // of what was kept; more is no measurement
constexpr uint32_t kMostTimes = 1'000'000'000;
constexpr int kMostSweeps = 40;    // each begins where the last ended
constexpr double kSettled = 1e-4;  // by which no effect changes in a sweep
constexpr char kBetween = '\0';    // no name has it

std::string key(const std::string& victim, const std::string& neighbour) {
  std::string both = victim;
  both += kBetween;
  both += neighbour;
  return both;
}

double square(double value) {
  return value * value;
}

}  // namespace

PairEffects::Owns::iterator PairEffects::grow(Owns& owns, const std::string& name) {
  const auto own = owns.try_emplace(name).first;
  ++own->second.pairs;
  return own;
}

void PairEffects::shrink(Owns& owns, Owns::iterator own, uint32_t measured) {
  own->second.measured -= measured;
  if (--own->second.pairs == 0) owns.erase(own);
}

PairEffects::Pair& PairEffects::open(const std::string& victim, const std::string& neighbour) {
  const auto [found, is_new] = at_.try_emplace(key(victim, neighbour));
  if (is_new) {
    pairs_.push_front({grow(victims_, victim), grow(neighbours_, neighbour)});
    found->second = pairs_.begin();
    if (pairs_.size() > most_pairs_) forget_oldest();
  } else {
    pairs_.splice(pairs_.begin(), pairs_, found->second);
  }
  return pairs_.front();
}

void PairEffects::forget_oldest() {
  const auto& oldest = pairs_.back();
  at_.erase(key(oldest.victim->first, oldest.neighbour->first));
  shrink(victims_, oldest.victim, oldest.measured);
  shrink(neighbours_, oldest.neighbour, oldest.measured);
  pairs_.pop_back();
}

void PairEffects::measured(const std::string& victim, const std::string& neighbour, double ln,
                           double variance, const PairThought& thought) {
  if (!std::isfinite(ln) || !(variance > 0)) return;
  const auto expected = of(victim, neighbour, thought);
  const double usual = kUsual * std::sqrt(expected.variance + variance);
  const double off = std::abs(ln - expected.ln);
  const double weight = (off > usual ? usual / off : 1) / variance;
  auto& pair = open(victim, neighbour);
  pair.weight = std::min(pair.weight + weight, kMostWeight);
  const double part = std::min(1.0, weight / pair.weight);
  pair.ln += (ln - pair.ln) * part;
  pair.thought += (thought.ln - pair.thought) * part;
  ++pair.measured;
  ++pair.victim->second.measured;
  ++pair.neighbour->second.measured;
  fitted_ = false;
}

std::optional<PairMeasured> PairEffects::measured(const std::string& victim,
                                                  const std::string& neighbour) const {
  const auto found = at_.find(key(victim, neighbour));
  if (found == at_.end()) return std::nullopt;
  const auto& pair = *found->second;
  return PairMeasured{pair.ln, pair.weight, pair.measured, pair.thought};
}

void PairEffects::restore(const std::string& victim, const std::string& neighbour,
                          const PairMeasured& from) {
  const bool is_one = std::abs(from.ln) <= kMostKeptLn && from.weight > 0 && from.times > 0 &&
                      from.times <= kMostTimes && std::abs(from.thought) <= kMostKeptLn;
  if (!is_one) return;
  auto& pair = open(victim, neighbour);
  for (auto* own : {&pair.victim->second, &pair.neighbour->second})
    own->measured += from.times - pair.measured;
  pair.ln = from.ln;
  pair.weight = std::min(from.weight, kMostWeight);
  pair.measured = from.times;
  pair.thought = from.thought;
  fitted_ = false;
}

// Gauss-Seidel on the mixed model's equations, one kind of effect after the other; a pair's own
// effect is noise to the others.
void PairEffects::fit() {
  if (fitted_) return;
  fitted_ = true;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double sum = 0, weights = 0;
    for (const auto& pair : pairs_) {
      const double weight = 1 / (square(spreads_.pair) + 1 / pair.weight);
      sum += weight * (pair.beyond() - pair.victim->second.ln - pair.neighbour->second.ln);
      weights += weight;
    }
    const double drawn_back = 1 / std::max(1e-12, square(spreads_.all));
    const double before = std::exchange(all_, sum / (weights + drawn_back));
    double changed = std::abs(all_ - before);
    changed =
        std::max(changed, fit_owns(victims_, &Pair::victim, &Pair::neighbour, spreads_.victim));
    changed = std::max(changed,
                       fit_owns(neighbours_, &Pair::neighbour, &Pair::victim, spreads_.neighbour));
    if (changed < kSettled) break;
  }
  // What names have of their own does not go away by measuring one of them often.
  const auto names = [&](const Owns& owns, double spread) {
    double informed = 0;
    for (const auto& [_, own] : owns) informed += 1 / (square(spread) + 1 / own.weight);
    return informed;
  };
  const double informed =
      std::min(names(victims_, spreads_.victim), names(neighbours_, spreads_.neighbour));
  all_variance_ = 1 / (1 / std::max(1e-12, square(spreads_.all)) + informed);
}

double PairEffects::fit_owns(Owns& owns, Owns::iterator Pair::*place, Owns::iterator Pair::*other,
                             double spread) {
  for (auto& [_, own] : owns) own.sum = own.weight = 0;
  for (const auto& pair : pairs_) {
    const double weight = 1 / (square(spreads_.pair) + 1 / pair.weight);
    auto& own = (pair.*place)->second;
    own.weight += weight;
    own.sum += weight * (pair.beyond() - all_ - (pair.*other)->second.ln);
  }
  double changed = 0;
  for (auto& [_, own] : owns) {
    const double ln = own.sum / (own.weight + 1 / std::max(1e-12, square(spread)));
    changed = std::max(changed, std::abs(ln - std::exchange(own.ln, ln)));
  }
  return changed;
}

double PairEffects::variance_of(const Owns& owns, const std::string& name, double spread) const {
  const auto found = owns.find(name);
  const double weight = found == owns.end() ? 0 : found->second.weight;
  return 1 / (1 / std::max(1e-12, square(spread)) + weight);
}

PairEffect PairEffects::of_victim(const std::string& name) {
  fit();
  const double all = pairs_.empty() ? square(spreads_.all) : all_variance_;
  const auto found = victims_.find(name);
  if (found == victims_.end()) return {all_, square(spreads_.victim) + all};
  // Its own effect and that of all are measured by the same pairs, each of which also has what its
  // neighbour does.
  const auto& own = found->second;
  const double of_each = own.pairs / std::max(1e-12, own.weight) + square(spreads_.neighbour);
  const double before = square(spreads_.all) + square(spreads_.victim);
  return {.ln = all_ + own.ln,
          .variance = 1 / (1 / std::max(1e-12, before) + own.pairs / of_each),
          .of_names = own.measured};
}

PairEffect PairEffects::of_neighbour(const std::string& name) {
  fit();
  PairEffect effect{0, variance_of(neighbours_, name, spreads_.neighbour)};
  if (const auto own = neighbours_.find(name); own != neighbours_.end()) {
    effect.ln = own->second.ln;
    effect.of_names = own->second.measured;
  }
  return effect;
}

PairEffect PairEffects::of(const std::string& victim, const std::string& neighbour,
                           const PairThought& thought) {
  fit();
  const auto found = at_.find(key(victim, neighbour));
  // What was measured under another thought draws little back to this one.
  const double changed = found == at_.end() ? 0 : thought.ln - found->second->thought;
  const double of_pair = square(spreads_.pair) + thought.variance + square(changed);
  PairEffect effect{all_ + thought.ln, 0, 0, 0};
  if (const auto own = victims_.find(victim); own != victims_.end()) {
    effect.ln += own->second.ln;
    effect.of_names += own->second.measured;
  }
  if (const auto own = neighbours_.find(neighbour); own != neighbours_.end()) {
    effect.ln += own->second.ln;
    effect.of_names += own->second.measured;
  }
  const double around = of_pair + variance_of(victims_, victim, spreads_.victim) +
                        variance_of(neighbours_, neighbour, spreads_.neighbour) +
                        (pairs_.empty() ? square(spreads_.all) : all_variance_);
  if (found == at_.end()) {
    effect.variance = around;
    return effect;
  }
  pairs_.splice(pairs_.begin(), pairs_, found->second);
  const auto& pair = pairs_.front();
  effect.of_pair = pair.measured;
  effect.ln += (pair.ln - effect.ln) * pair.weight / (pair.weight + 1 / std::max(1e-12, of_pair));
  effect.variance = 1 / (1 / std::max(1e-12, around) + pair.weight);
  return effect;
}

}  // namespace tierpilot::sharing
