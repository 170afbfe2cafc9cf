// The Cluster interface's part about nodes.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "coordinator/service/caller.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

class NodeService : public virtual wire::Cluster::Server {
 public:
  explicit NodeService(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  kj::Promise<void> registerNode(RegisterNodeContext context) override;
  kj::Promise<void> nodeList(NodeListContext context) override;
  kj::Promise<void> nodeShow(NodeShowContext context) override;
  kj::Promise<void> nodeOrder(NodeOrderContext context) override;
  kj::Promise<void> nodeRemove(NodeRemoveContext context) override;

 private:
  using DatasetCounts = std::unordered_map<std::string, uint32_t>;

  void write_node(const NodeRecord& node, const DatasetCounts& datasets,
                  wire::NodeEntry::Builder out) const;

  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot
