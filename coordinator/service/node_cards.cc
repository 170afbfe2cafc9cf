#include "coordinator/service/node_cards.h"

namespace tierpilot {

void NodeCards::joined(const std::string& node, wire::NodeInfo::Reader info,
                       wire::Node::Client client) {
  auto card = std::make_unique<Card>();
  card->info = std::make_unique<capnp::MallocMessageBuilder>();
  card->info->setRoot(info);
  card->status = std::make_unique<capnp::MallocMessageBuilder>();
  card->status->initRoot<wire::NodeStatus>();
  card->client = kj::mv(client);
  cards_[node] = std::move(card);
}

void NodeCards::reported(const std::string& node, wire::NodeStatus::Reader status) {
  auto* card = find(node);
  if (!card) return;
  card->status = std::make_unique<capnp::MallocMessageBuilder>();
  card->status->setRoot(status);
}

void NodeCards::described(const std::string& node, wire::NodeInfo::Reader info) {
  auto* card = find(node);
  if (!card) return;
  card->info = std::make_unique<capnp::MallocMessageBuilder>();
  card->info->setRoot(info);
}

NodeCards::Card* NodeCards::find(const std::string& node) {
  const auto found = cards_.find(node);
  return found == cards_.end() ? nullptr : found->second.get();
}

}  // namespace tierpilot
