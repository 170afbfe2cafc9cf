// What nodes said of themselves, kept to be shown as it came, but for reasons that are cut; and the
// way to ask them directly.
#pragma once

#include <capnp/message.h>

#include <map>
#include <memory>
#include <string>

#include "rpc/cluster.capnp.h"

namespace tierpilot {

class NodeCards {
 public:
  struct Card {
    // A builder never gives memory back, so each report gets a new one.
    std::unique_ptr<capnp::MallocMessageBuilder> info, status;
    kj::Maybe<wire::Node::Client> client;
  };

  void joined(const std::string& node, wire::NodeInfo::Reader info, wire::Node::Client client);
  void reported(const std::string& node, wire::NodeStatus::Reader status);
  void described(const std::string& node, wire::NodeInfo::Reader info);
  Card* find(const std::string& node);
  // What a node takes of an answer that shows it, about.
  size_t bytes(const std::string& node);
  void forget(const std::string& node) { cards_.erase(node); }

 private:
  std::map<std::string, std::unique_ptr<Card>> cards_;
};

}  // namespace tierpilot
