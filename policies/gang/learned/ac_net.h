// The actor and the critic of `ac`. The actor scores each unit of a candidate with the same
// weights; a candidate's logit is the mean over its units, on top of what expected hours say. With
// weights of zero it is the heuristic, which is where training begins.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policies/gang/learned/ac_features.h"
#include "policies/gang/learned/dense_net.h"

namespace tierpilot::gang {

struct AcNet {
  explicit AcNet(uint64_t seed, AcView view = AcView::kRates);

  AcView view;      // weights in files are of rates
  DenseNet actor;   // kUnitFeatures to 1
  DenseNet critic;  // kStateFeatures to 1

  // Logits of all candidates. `passes`: of each candidate's units, for the way back; may be null.
  std::vector<float> logits(const AcInput& input,
                            std::vector<std::vector<DenseNet::Pass>>* passes = nullptr) const;

 private:
  AcNet(AcView view, SeededRandom random);
};

// Text: a line that says what it is, then one number a line. kInvalid names the line.
std::string ac_weights_text(const AcNet& net, const std::string& origin);
Result<AcNet> read_ac_weights(const std::string& text, const std::string& name);

// Takes the candidate with the largest logit.
std::unique_ptr<Placer> make_ac_placer(std::shared_ptr<const AcNet> net);

}  // namespace tierpilot::gang
