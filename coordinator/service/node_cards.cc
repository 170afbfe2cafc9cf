#include "coordinator/service/node_cards.h"

#include "coordinator/service/wire.h"

namespace tierpilot {
namespace {

// Of what it is and of how it is, each: so a page of nodes fits an answer, whatever one of them
// says. One that says more is shown without.
constexpr uint64_t kMostWords = (1 << 20) / sizeof(capnp::word);

// Of an info or a status, read or built.
template <class Of, class See>
void each_measure(Of of, const See& see) {
  if constexpr (requires { of.getTiers(); }) {
    see(of.getFloat32OpsPerS());
    see(of.getInt32ToFloat());
    for (auto tier : of.getTiers()) {
      see(tier.getLatencyNs().getP50());
      see(tier.getLatencyNs().getP99());
      see(tier.getReadGbPerS());
      see(tier.getWriteGbPerS());
      see(tier.getEvictGbPerS());
      see(tier.getPromoteGbPerS());
    }
  } else {
    see(of.getEvictGbPerS());
    see(of.getSelfCpuShare());
    see(of.getBpfRunTimeShare());
    for (auto metric : of.getMetrics()) see(metric.getValue());
    for (auto gpu : of.getGpus()) {
      see(gpu.getTemperatureC());
      see(gpu.getMemoryUsedBytes());
      see(gpu.getBusyPercent());
    }
  }
}

bool is_long(wire::Measure::Reader measure) {
  return measure.isUnavailable() && measure.getUnavailable().size() > kMostReasonBytes;
}

// Without its size a builder clears 8 KiB for its first segment, at every update of every node.
template <class Reader>
std::unique_ptr<capnp::MallocMessageBuilder> copy_of(Reader value) {
  const auto words = value.totalSize().wordCount + 1;
  auto message = std::make_unique<capnp::MallocMessageBuilder>(static_cast<uint32_t>(words));
  message->setRoot(value);
  return message;
}

// With its reasons cut. A builder keeps what it no longer needs, so that takes a copy of the copy.
template <class What>
std::unique_ptr<capnp::MallocMessageBuilder> card_of(typename What::Reader told) {
  bool any_is_long = false;
  each_measure(told, [&](wire::Measure::Reader measure) { any_is_long |= is_long(measure); });
  auto card = copy_of(told);
  if (any_is_long) {
    each_measure(card->template getRoot<What>(), [](wire::Measure::Builder measure) {
      if (is_long(measure.asReader()))
        measure.setUnavailable(short_reason(measure.asReader().getUnavailable()));
    });
    card = copy_of(card->template getRoot<What>().asReader());
  }
  const auto words = card->template getRoot<What>().asReader().totalSize().wordCount;
  return words <= kMostWords ? std::move(card) : nullptr;
}

std::unique_ptr<capnp::MallocMessageBuilder> info_card(const std::string& node,
                                                       wire::NodeInfo::Reader told) {
  if (auto card = card_of<wire::NodeInfo>(told)) return card;
  auto bare = std::make_unique<capnp::MallocMessageBuilder>();
  bare->initRoot<wire::NodeInfo>().setName(node);
  return bare;
}

std::unique_ptr<capnp::MallocMessageBuilder> empty_status() {
  auto status = std::make_unique<capnp::MallocMessageBuilder>();
  status->initRoot<wire::NodeStatus>();
  return status;
}

}  // namespace

void NodeCards::joined(const std::string& node, wire::NodeInfo::Reader info,
                       wire::Node::Client client) {
  auto card = std::make_unique<Card>();
  card->info = info_card(node, info);
  card->status = empty_status();
  card->client = kj::mv(client);
  cards_[node] = std::move(card);
}

void NodeCards::reported(const std::string& node, wire::NodeStatus::Reader status) {
  auto* card = find(node);
  if (!card) return;
  card->status = card_of<wire::NodeStatus>(status);
  if (!card->status) card->status = empty_status();
}

void NodeCards::described(const std::string& node, wire::NodeInfo::Reader info) {
  auto* card = find(node);
  if (card) card->info = info_card(node, info);
}

NodeCards::Card* NodeCards::find(const std::string& node) {
  const auto found = cards_.find(node);
  return found == cards_.end() ? nullptr : found->second.get();
}

size_t NodeCards::bytes(const std::string& node) {
  constexpr size_t kEntryBytes = 512 + kMostReasonBytes;  // it tells why it takes no tasks
  const auto* card = find(node);
  if (!card) return kEntryBytes;
  const auto words = card->info->getRoot<wire::NodeInfo>().asReader().totalSize().wordCount +
                     card->status->getRoot<wire::NodeStatus>().asReader().totalSize().wordCount;
  return kEntryBytes + words * sizeof(capnp::word);
}

}  // namespace tierpilot
