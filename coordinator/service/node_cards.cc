#include "coordinator/service/node_cards.h"

namespace tierpilot {
namespace {

// Without its size a builder clears 8 KiB for its first segment, at every update of every node.
template <class Reader>
std::unique_ptr<capnp::MallocMessageBuilder> copy_of(Reader value) {
  const auto words = value.totalSize().wordCount + 1;
  auto message = std::make_unique<capnp::MallocMessageBuilder>(static_cast<uint32_t>(words));
  message->setRoot(value);
  return message;
}

}  // namespace

void NodeCards::joined(const std::string& node, wire::NodeInfo::Reader info,
                       wire::Node::Client client) {
  auto card = std::make_unique<Card>();
  card->info = copy_of(info);
  card->status = std::make_unique<capnp::MallocMessageBuilder>();
  card->status->initRoot<wire::NodeStatus>();
  card->client = kj::mv(client);
  cards_[node] = std::move(card);
}

void NodeCards::reported(const std::string& node, wire::NodeStatus::Reader status) {
  auto* card = find(node);
  if (card) card->status = copy_of(status);
}

void NodeCards::described(const std::string& node, wire::NodeInfo::Reader info) {
  auto* card = find(node);
  if (card) card->info = copy_of(info);
}

NodeCards::Card* NodeCards::find(const std::string& node) {
  const auto found = cards_.find(node);
  return found == cards_.end() ? nullptr : found->second.get();
}

size_t NodeCards::bytes(const std::string& node) {
  constexpr size_t kEntryBytes = 512;
  const auto* card = find(node);
  if (!card) return kEntryBytes;
  const auto words = card->info->getRoot<wire::NodeInfo>().asReader().totalSize().wordCount +
                     card->status->getRoot<wire::NodeStatus>().asReader().totalSize().wordCount;
  return kEntryBytes + words * sizeof(capnp::word);
}

}  // namespace tierpilot
