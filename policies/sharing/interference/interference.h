// Slow-downs by neighbours on a shared unit: what jobs keep of their speed beyond what their shares
// take. Before anything was measured by a prior, from then on by what jobs show: of a pair of
// names, else of each of the two beside others, else of all. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "policies/sharing/interference/kept.h"
#include "policies/sharing/interference/pair_effects.h"

namespace tierpilot::sharing {

// Neighbours of one job that came or went, and how its pace changed by that.
struct PaceChange {
  std::vector<Sharer> came, went;
  double ln = 0;        // of the pace after by the pace before
  double variance = 0;  // of ln, above 0
};

// Of two names, on units of a kind.
struct LearnedPair {
  UnitKind on = UnitKind::kCores;
  std::string victim, neighbour;
  PairMeasured measured;
};

class Interference {
 public:
  Interference(PairPrior cores, PairPrior gpus);
  Interference(const Interference&) = delete;
  Interference& operator=(const Interference&) = delete;

  Kept beside(const Sharer& victim, const Sharer& neighbour);
  Kept beside(const Sharer& victim, std::span<const Sharer> neighbours);
  // What several took or gave is dealt to them by how little is known of each. Nothing is learned
  // of jobs without a name. Gives what is known of the pairs that were measured by it.
  std::vector<LearnedPair> learn(const Sharer& victim, const PaceChange& change);
  void restore(const LearnedPair& pair);
  // Something was measured of jobs of this name.
  bool knows(const std::string& name) const {
    return cores_.effects.knows(name) || gpus_.effects.knows(name);
  }

 private:
  struct Learned {
    PairPrior prior;
    PairEffects effects;
  };
  Learned& on(UnitKind kind) { return kind == UnitKind::kGpu ? gpus_ : cores_; }
  // What measured pairs are told from: of GPUs the same for all, of cores what is thought of each.
  struct Thought {
    double of_all = 0;
    PairThought of_pair;
  };
  static Thought thought(const PairPrior& prior, const Sharer& victim, const Sharer& neighbour);

  Learned cores_, gpus_;
};

}  // namespace tierpilot::sharing
