// What others do: simple rules and published ones.
#pragma once

#include "policies/sharing/fragmentation.h"
#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

// Who asks for a part of a unit gets all of it; the fullest node that fits.
class WholeUnits final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request) const override;
  Request given(const Request& request) const override;
};

// The node where the least is left, the sum of its cores and units, each as a share of
// `most_cpu_milli` and `most_units` (the largest node's); there the fullest unit.
class BestFit final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request) const override;
};

class FirstFit final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request) const override;
};

// The unit with the most free share, as vCUDA-like systems do to keep neighbours few.
class MostFree final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request) const override;
};

// GPU packing as in "MLaaS in the Wild" (Weng et al., NSDI 2022): first units that are shared
// already, then idle units of nodes that are used, then idle nodes.
class UnitPacking final : public Scorer {
 public:
  Offer offer(const Node& node, const Request& request) const override;
};

// Fragmentation gradient descent (see fragmentation.h): the placement that makes fragmentation grow
// least.
class FragmentationDescent final : public Scorer {
 public:
  explicit FragmentationDescent(const std::vector<Request>& typical);
  Offer offer(const Node& node, const Request& request) const override;

 private:
  Fragmentation fragmentation_;
};

}  // namespace tierpilot::sharing
