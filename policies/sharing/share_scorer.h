// Placement by `share` on what is free.
#pragma once

#include "policies/sharing/placement.h"
#include "policies/sharing/usable_share.h"

namespace tierpilot::sharing {

// Where the least is lost of what usually comes could use, and of nodes that lose about as much the
// one that is left the fullest.
class ShareScorer final : public Scorer {
 public:
  explicit ShareScorer(const std::vector<Request>& typical);
  double worth(const Node& node) const override;
  Offer offer(const Node& node, const Request& request, double worth) const override;

 private:
  UsableShare usable_;
};

}  // namespace tierpilot::sharing
