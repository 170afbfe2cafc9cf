#include "policies/sharing/interference/interference.h"

namespace tierpilot::sharing {

Interference::Interference(PairPrior cores, PairPrior gpus)
    : cores_{cores, PairEffects(cores.spreads)}, gpus_{gpus, PairEffects(gpus.spreads)} {}

Interference::Thought Interference::thought(const PairPrior& prior, const Sharer& victim,
                                            const Sharer& neighbour) {
  const double ln = prior.ln_kept(victim, neighbour);
  if (!prior.by_law) return {ln, {}};
  return {prior.counted_from, {ln - prior.counted_from, prior.less_sure(victim, neighbour)}};
}

Kept Interference::beside(const Sharer& victim, const Sharer& neighbour) {
  auto& learned = on(victim.on);
  const auto thought = Interference::thought(learned.prior, victim, neighbour);
  const auto effect = learned.effects.of(victim.name, neighbour.name, thought.of_pair);
  Kept kept{thought.of_all + effect.ln, effect.variance};
  const bool named = !victim.name.empty() && !neighbour.name.empty();
  kept.measured = effect.of_pair > 0 ? effect.of_pair : effect.of_names;
  if (effect.of_pair > 0 && named)
    kept.by = KeptBy::kPair;
  else if (effect.of_names > 0)
    kept.by = KeptBy::kOwnEffects;
  return kept;
}

Kept Interference::beside(const Sharer& victim, std::span<const Sharer> neighbours) {
  Kept all{.ln = 0, .variance = 0, .by = KeptBy::kPair, .measured = UINT32_MAX};
  for (const auto& neighbour : neighbours) all = all * beside(victim, neighbour);
  return neighbours.empty() ? Kept{} : all;
}

std::vector<LearnedPair> Interference::learn(const Sharer& victim, const PaceChange& change) {
  if (victim.name.empty() || !(change.variance > 0)) return {};
  struct Part {
    const Sharer* neighbour;
    double sign;
    Kept kept;
  };
  std::vector<Part> parts;
  double expected = 0, variance = 0;
  const auto add = [&](const std::vector<Sharer>& neighbours, double sign) {
    for (const auto& neighbour : neighbours) {
      const auto& part = parts.emplace_back(Part{&neighbour, sign, beside(victim, neighbour)});
      expected += sign * part.kept.ln;
      variance += part.kept.variance;
    }
  };
  add(change.came, 1);
  add(change.went, -1);
  auto& learned = on(victim.on);
  std::vector<LearnedPair> pairs;
  for (const auto& [neighbour, sign, kept] : parts) {
    if (neighbour->name.empty()) continue;
    // What the others did is known as far as they are.
    const double ln = kept.ln + sign * (change.ln - expected);
    const auto thought = Interference::thought(learned.prior, victim, *neighbour);
    learned.effects.measured(victim.name, neighbour->name, ln - thought.of_all,
                             change.variance + variance - kept.variance, thought.of_pair);
    if (const auto measured = learned.effects.measured(victim.name, neighbour->name))
      pairs.push_back({victim.on, victim.name, neighbour->name, *measured});
  }
  return pairs;
}

void Interference::restore(const LearnedPair& pair) {
  on(pair.on).effects.restore(pair.victim, pair.neighbour, pair.measured);
}

}  // namespace tierpilot::sharing
