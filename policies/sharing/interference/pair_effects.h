// How far pairs of jobs are from a prior, from single measurements of pairs: a mixed model of an
// effect of all, one of the victim, one of the neighbour and one of the pair, each drawn back to
// zero by its spread (best linear unbiased prediction: Robinson, That BLUP is a Good Thing,
// Statistical Science 6(1), 1991).
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "policies/sharing/interference/pair_prior.h"

namespace tierpilot::sharing {

// Of a pair before it is measured, beyond what is thought of all pairs.
struct PairThought {
  double ln = 0;
  double variance = 0;  // by which it is less sure than the spreads say
};

// Of a pair, to be added to what is thought of all; what was thought of this one is in it.
struct PairEffect {
  double ln = 0;
  double variance = 0;
  uint32_t of_pair = 0;   // measurements of it
  uint32_t of_names = 0;  // of the one as a victim and the other as a neighbour of anybody
};

// All that is remembered of the measurements of a pair.
struct PairMeasured {
  double ln = 0;      // their mean, by what each of them counts
  double weight = 0;  // 1 / its variance, above 0
  uint32_t times = 0;
  double thought = 0;  // PairThought's ln at these measurements, likewise; it is in `ln`

  bool operator==(const PairMeasured&) const = default;
};

class PairEffects {
 public:
  // Those that were measured or asked for last; one more, and the oldest is forgotten.
  static constexpr size_t kMostPairs = 4096;

  explicit PairEffects(const EffectSpreads& spreads, size_t most_pairs = kMostPairs)
      : spreads_(spreads), most_pairs_(most_pairs) {}
  PairEffects(const PairEffects&) = delete;
  PairEffects& operator=(const PairEffects&) = delete;

  // `variance`: of the measurement, above 0. One that nobody would expect counts less (Huber,
  // Robust Estimation of a Location Parameter, 1964); the newest of a pair count more than what is
  // long ago. What is measured of a pair stays, whatever is thought of it later.
  void measured(const std::string& victim, const std::string& neighbour, double ln, double variance,
                const PairThought& thought = {});
  // Nothing: it was never measured, or is forgotten.
  std::optional<PairMeasured> measured(const std::string& victim,
                                       const std::string& neighbour) const;
  // In place of what was measured of the pair here. What is no measurement is left out.
  void restore(const std::string& victim, const std::string& neighbour, const PairMeasured& pair);
  // Of one alone: as a victim what all have and its own, as a neighbour its own only.
  PairEffect of_victim(const std::string& name);
  PairEffect of_neighbour(const std::string& name);
  // Asking keeps a measured pair from being forgotten.
  PairEffect of(const std::string& victim, const std::string& neighbour,
                const PairThought& thought = {});

  bool knows(const std::string& name) const {
    return victims_.contains(name) || neighbours_.contains(name);
  }
  size_t pairs() const { return pairs_.size(); }
  size_t names() const { return victims_.size() + neighbours_.size(); }

 private:
  // Of a name in one of the two places.
  struct Own {
    double ln = 0;
    double weight = 0;  // of its measurements
    double sum = 0;     // scratch: of what they say of it
    uint32_t pairs = 0, measured = 0;
  };
  using Owns = std::unordered_map<std::string, Own>;
  struct Pair {
    Owns::iterator victim, neighbour;
    double ln = 0;
    double weight = 0;  // 1 / variance
    uint32_t measured = 0;
    double thought = 0;  // when it was measured
    double beyond() const { return ln - thought; }
  };
  using Pairs = std::list<Pair>;  // the newest first

  static Owns::iterator grow(Owns& owns, const std::string& name);
  static void shrink(Owns& owns, Owns::iterator own, uint32_t measured);
  Pair& open(const std::string& victim, const std::string& neighbour);
  void forget_oldest();
  void fit();
  // Gives the largest change of one.
  double fit_owns(Owns& owns, Owns::iterator Pair::*place, Owns::iterator Pair::*other,
                  double spread);
  double variance_of(const Owns& owns, const std::string& name, double spread) const;

  EffectSpreads spreads_;
  size_t most_pairs_;
  Pairs pairs_;
  std::unordered_map<std::string, Pairs::iterator> at_;
  Owns victims_, neighbours_;
  double all_ = 0;
  double all_variance_ = 0;
  bool fitted_ = false;
};

}  // namespace tierpilot::sharing
