// Transfers of tasks' data over the links of their nodes: those of memory, of the slow tier and of
// the network. What a transfer takes beside its bytes counts as bytes, as many as could pass in
// that time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/large_pages.h"
#include "policies/sim/data/data_client.h"
#include "policies/sim/data/flows.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"

namespace tierpilot::sim {

class Transfers {
 public:
  Transfers(const ClusterSpec& cluster, EventQueue& events, DataClient& client);

  // Each begins a transfer of one of the node's movers and gives its flow, whose end is told with
  // `request`.
  uint32_t promote(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes);
  uint32_t copy(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes);
  uint32_t fetch(int64_t now_ns, uint32_t request, uint32_t node, const Replica& source);
  // Writing back frees the bytes, too.
  uint32_t write_back(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes);
  uint32_t free(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes);
  bool frees_at_once(uint32_t node) const { return kind(node).freed_as_copied <= 0; }
  // One of them is over. A flow that has not ended is to be cancelled.
  void over(int64_t now_ns, uint32_t node) {
    --nodes_[node].under_way;
    client_.transfer(now_ns, node, false);
  }
  bool any_under_way(uint32_t node) const { return nodes_[node].under_way > 0; }

  // So many files are written to the slow tier, by no mover.
  uint32_t commit(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes, uint32_t files);

  void cancel(int64_t now_ns, uint32_t flow) { flows_.cancel(now_ns, flow); }
  // The request whose flow has ended; nothing: it still has to wait.
  std::optional<uint32_t> take_ended(const Event& event) { return flows_.take_ended(event); }

  uint32_t request_of(uint32_t flow) const { return flows_.owner(flow); }
  // Ask for memory that will be touched; the links once the flow is there.
  void expect(uint32_t node) const { prefetch(nodes_[node]); }
  void expect_flow(uint32_t flow) const { flows_.expect(flow); }
  void expect_links(uint32_t flow) const { flows_.expect_links(flow); }

 private:
  enum Resource : uint32_t { kSlowRead, kSlowWrite, kMemory, kUplink, kDownlink };
  struct Kind {
    // What could pass in the time that a transfer takes beside its bytes.
    double promote_start_bytes, evict_start_bytes, link_start_bytes;
    // Of each byte that is freed: so many could be written back, or copied, in that time.
    double freed_as_written, freed_as_copied;
  };
  struct Node {
    uint32_t kind = 0;
    uint32_t first_link = 0;  // in order of Resource
    uint32_t under_way = 0;   // of its movers
  };

  const Kind& kind(uint32_t node) const { return kinds_[nodes_[node].kind]; }
  uint32_t link(uint32_t node, Resource resource) const {
    return nodes_[node].first_link + resource;
  }
  uint32_t begin(int64_t now_ns, uint32_t request, uint32_t node, double bytes,
                 std::initializer_list<uint32_t> links);

  DataClient& client_;
  Flows flows_;
  std::vector<Kind> kinds_;  // one of each group
  LargeVector<Node> nodes_;
};

}  // namespace tierpilot::sim
