// Placement by `share` on what is free.
#pragma once

#include "policies/sharing/fragmentation.h"
#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

// Fragmentation gradient descent over all that comes, the host's memory included, and of nodes that
// lose about as much the one that is left the fullest.
class ShareScorer final : public Scorer {
 public:
  explicit ShareScorer(const std::vector<Request>& typical);
  Offer offer(const Node& node, const Request& request) const override;

 private:
  double score(const Node& node, const Request& request, const std::vector<uint32_t>& units,
               double before) const;

  Fragmentation fragmentation_;
};

}  // namespace tierpilot::sharing
