// What others do: simple rules and published ones.
#pragma once

#include "policies/sharing/fragmentation.h"
#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

// Who asks for a part of a unit gets all of it; the fullest node that fits.
class WholeUnits final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request, double worth) const override;
  Request given(const Request& request) const override;
};

// The node where the least is left, of its cores and units together; there the fullest unit.
class BestFit final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request, double worth) const override;
};

class FirstFit final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request, double worth) const override;
};

// The unit with the most free share, as vCUDA-like systems do to keep neighbours few.
class MostFree final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request, double worth) const override;
};

// GPU packing as in "MLaaS in the Wild" (Weng et al., NSDI 2022): first units that are shared
// already, then idle units of nodes that are used, then idle nodes.
class UnitPacking final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request, double worth) const override;
};

// Fragmentation gradient descent (see fragmentation.h): the placement that makes fragmentation grow
// least. As published, with scores in whole hundredths of a sigmoid, so that of much the same the
// first is taken: that packs, and without it 93.5 % of the published cluster are reached in place
// of 95.3 %.
class FragmentationDescent final : public Scorer {
 public:
  explicit FragmentationDescent(const std::vector<Request>& typical);
  double worth(const Node& node) const override;
  Offer offer(const Node& node, const Request& request, double worth) const override;

 private:
  Fragmentation fragmentation_;
};

}  // namespace tierpilot::sharing
