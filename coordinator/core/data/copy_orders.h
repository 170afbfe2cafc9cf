// Copies of datasets that nodes were asked to make and keep: who is asked, and what is under way.
// Event loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

class CopyOrders {
 public:
  using Holders = std::map<std::string, ReplicaState>;  // of the version, by node
  // kUnreachable: the node's connection broke, or is another one by now.
  using Done = std::function<void(const std::string& node, Status)>;
  // repair: one at a time for a node, half a minute after a failure. write: somebody waits for it.
  enum class Kind { kRepair, kWrite };
  // busy: who would be asked makes as many as it is asked for at a time.
  enum class Asked { kYes, kBusy, kNobody };

  explicit CopyOrders(ClusterState& state) : state_(state), begun_ns_(state.clock.boot_ns()) {}

  // One copy of a dataset is under way at a time. A node that is connected anew, or lost, does not
  // make what it was asked for before.
  bool is_under_way(const std::string& dataset);
  // Asks the node with most room, one that has the version before others; `done` once it has made
  // it or cannot.
  Asked order(const DatasetVersion& what, const Holders& holders, Kind kind, Done done);
  // Some node would be asked if it, and who it copies from, were here and had the time; of those
  // that are away, one that was here half a minute ago.
  bool may_yet(const DatasetVersion& what, const Holders& holders);
  // True once in half a minute for each pair.
  bool may_ask(const std::string& dataset, const std::string& node);
  // Forgets what is over.
  void tick();

 private:
  using Copy = std::pair<std::string, std::string>;  // dataset, node
  struct Order {
    uint64_t number = 0;
    Kind kind = Kind::kRepair;
    std::weak_ptr<NodeLink> link;
  };
  using Orders = std::map<Copy, Order>;
  struct Pause {
    int64_t until_ns = 0;  // boot time
    bool refused = false;  // the node has no room for it, say: it is no use to ask it again soon
  };

  bool may_take(const NodeRecord& node, const DatasetVersion& what, const Holders& holders) const;
  // Null: nobody may, or `busy`.
  NodeRecord* choose(const DatasetVersion& what, const Holders& holders, Kind kind, bool& busy);
  void answered(const Copy& copy, uint64_t number, uint64_t version, Kind kind, Status kept,
                const Done& done);
  void pause(const Copy& copy, Kind kind, ErrorCode why);
  const Pause* pause_of(const Copy& copy) const;
  bool goes_on(const std::string& node, const Order& order) const;
  Orders::iterator erase(Orders::iterator order);

  ClusterState& state_;
  Orders under_way_;
  std::map<std::string, std::array<size_t, 2>> asked_;  // of each node, by kind
  std::map<Copy, Pause> pauses_;                        // after a failure, or a question
  uint64_t last_number_ = 0;
  const int64_t begun_ns_;  // boot time
};

// For `reader`: who is up and has the version; best first.
DatasetNeed need_of(const ClusterState& state, const DatasetVersion& what,
                    const CopyOrders::Holders& holders, const std::string& reader);
// Nodes that keep the version and are not lost.
uint32_t nodes_that_keep(const CopyOrders::Holders& holders, uint64_t version);

}  // namespace tierpilot
