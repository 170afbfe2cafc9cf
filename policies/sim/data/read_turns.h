// Whose turn it is to read from a node: a source whose link is shared by few is soon done with
// them, and then there are more sources (as daemon/agent/data/read_turns.h; upload slots: Cohen,
// Incentives Build Robustness in BitTorrent, 2003).
#pragma once

#include <cstdint>

#include "base/large_pages.h"
#include "policies/sim/data/requests.h"
#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {

class ReadTurns {
 public:
  ReadTurns(const ClusterSpec& cluster, Requests& requests);

  bool any_left(uint32_t source) const { return nodes_[source].taken < nodes_[source].readers; }
  // There must be one left.
  void take(DataRequest& request, uint32_t source);
  // The request goes on when it has one.
  void wait(uint32_t id, uint32_t source);
  // Gives it to the next who waits.
  void pass(DataRequest& request);
  // The request waits no longer, if it did.
  void leave(uint32_t id);
  // Of those who wait at the source for what the node `copy` has read there every second goes on to
  // it.
  void send_to_copy(uint32_t source, uint32_t copy, const DataItem& item);
  // Nobody reads there, or waits.
  void source_failed(uint32_t source);

  // Asks for memory that will be touched.
  void expect(uint32_t node) const { prefetch(nodes_[node]); }

 private:
  struct Node {
    uint32_t readers = 0;
    uint32_t taken = 0;
    RequestLine line;  // of other nodes' requests
  };
  void give(uint32_t id, uint32_t source);

  Requests& requests_;
  LargeVector<Node> nodes_;
};

}  // namespace tierpilot::sim
