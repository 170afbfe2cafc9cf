// Which model cards a predictor was trained on, to tell one that is unlike all of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policies/sharing/card/model_card.h"

namespace tierpilot::sharing {

// Of the totals of cards: those much smaller or larger are unlike what was learned from.
struct Range {
  double least = 0, most = 0;
};

// FLOPs, parameters, activation bytes, launches.
std::vector<double> totals_of(const ModelCard& card);

struct SeenCards {
  std::vector<Range> totals;    // of totals_of()
  std::set<std::string> kinds;  // of operators

  void add(const ModelCard& card);
  // What makes it unlike; empty: nothing.
  std::string unlike_why(const ModelCard& card) const;
};

}  // namespace tierpilot::sharing
