// How fast the cores of nodes run trainings, against the core that these are predicted for, and how
// far runs of a model are from what its card foretells: first by what nodes' probes measure, then
// by the trainings that ran. The same of kinds of GPUs, whose features predictions know already.
// Event loop thread only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/nodes/node_record.h"
#include "coordinator/store/records.h"
#include "policies/sharing/interference/pair_effects.h"

namespace tierpilot {

// Of a model: its runs take exp(ln) times as long as its card foretells.
struct RunCorrection {
  double ln = 0;
  double sd = 0;      // of ln, of its next run on a core of a known speed
  uint32_t runs = 0;  // it is known by
};

// Against the core that trainings are predicted for.
struct CoreSpeed {
  double times = 1;
  double sd = 0.25;  // of its logarithm
};

class CoreSpeeds {
 public:
  // Of the core that trainings are predicted for, as nodes measure theirs; 0: not known.
  explicit CoreSpeeds(double reference_float32_ops_per_s)
      : reference_ops_per_s_(reference_float32_ops_per_s) {}

  // In steps of a twentieth, so that few differ.
  CoreSpeed of(const NodeFacts& node) { return of(node.name, probed(node)); }
  CoreSpeed of(const std::string& where, double probed = 1);
  // By ShareForecasts::model_of().
  RunCorrection of_model(const std::string& model);

  // A training of the model ran to its end: for `ratio` times as long as foretold by its card for a
  // core as fast as the node's probe says.
  void ran(const NodeFacts& node, const std::string& model, double ratio) {
    ran(node.name, model, ratio);
  }
  void ran(const std::string& where, const std::string& model, double ratio);
  // What ran() is told of is relative to this.
  double probed(const NodeFacts& node) const;

  // What was learned since the last call, to be kept; what an earlier coordinator kept.
  std::vector<records::MeasuredPair> take_learned() { return std::exchange(learned_, {}); }
  void restore(const std::vector<records::MeasuredPair>& pairs);

 private:
  // Standard deviations of ln(run / foretold): of other machines than the one that was measured, of
  // what a probe does not tell of a node, of architectures never seen
  // (docs/results/sharing.md, trainings on a core), of single runs.
  static constexpr sharing::EffectSpreads kSpreads{
      .all = 0.2, .victim = 0.15, .neighbour = 0.2, .pair = 0.05};

  double reference_ops_per_s_;
  sharing::PairEffects effects_{kSpreads};  // of nodes as victims, of models as neighbours
  std::vector<records::MeasuredPair> learned_;
};

}  // namespace tierpilot
