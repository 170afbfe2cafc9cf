// Fragmentation as "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
// Gradient Descent" (Weng et al., USENIX ATC 2023) defines it: of what is free on a node, the part
// that a request drawn from what usually comes cannot use, in the mean.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

struct TypicalRequest {
  Request request;
  double share = 0;  // of all requests; all together 1
};

// Requests that are alike are one; the most frequent come first. Those that make up `coverage` of
// all are kept (the paper's simulator keeps 95 %) and their shares scaled to 1.
std::vector<TypicalRequest> typical_requests(const std::vector<Request>& requests, double coverage);

// So many of them at most stand for all, evenly over what is asked for: where hardly two requests
// are alike, all would take a placement long.
inline constexpr size_t kMostTypical = 400;
std::vector<TypicalRequest> representative(std::vector<TypicalRequest> typical,
                                           size_t most = kMostTypical);

class Fragmentation {
 public:
  // Of the host its cores have to suffice, as in the paper.
  explicit Fragmentation(const std::vector<TypicalRequest>& typical);

  // Thousandths of a unit that are free and of no use. A request without units can use none.
  double milli(const Node& node) const;

 private:
  struct Want {
    uint32_t cpu_milli;
    uint32_t units;
    uint32_t milli;
    uint64_t models;
    double share;
  };
  std::vector<Want> wants_;  // by milli
};

}  // namespace tierpilot::sharing
