#include "tests/dst/network.h"

#include <algorithm>
#include <utility>

namespace tierpilot::dst {
namespace {

constexpr int64_t kKeepaliveNs = 30 * kSecond;  // see rpc/transport.cc

}  // namespace

void Network::cut(int node, Way way, int64_t until_ns) {
  auto& until = cut_until_ns_[index(node, way)];
  until = std::max(until, until_ns);
}

void Network::reset(int node) {
  const auto connections = connections_;
  for (const auto& connection : connections)
    if (const auto left = connection.lock(); left && left->node() == node) left->reset();
}

bool Network::reaches(int a, int b) const {
  for (const int node : {a, b})
    for (const Way way : {Way::kUp, Way::kDown})
      if (is_cut(node, way)) return false;
  return true;
}

Network::~Network() {
  for (const auto& connection : connections_)
    if (const auto left = connection.lock()) left->forget();
}

ConnectionPtr Network::connect(int node, LifePtr node_life, LifePtr coordinator_life) {
  std::erase_if(connections_, [](const auto& connection) { return connection.expired(); });
  auto connection =
      std::make_shared<Connection>(*this, node, std::move(node_life), std::move(coordinator_life));
  connections_.push_back(connection);
  return connection;
}

// Messages hold what answers them, and that holds the connection.
void Connection::forget() {
  const auto lost = std::exchange(queued_, {});
  on_closed_at_coordinator = on_closed_at_node = nullptr;
}

void Connection::reset() {
  if (std::exchange(reset_, true)) return;
  for (const Way receiver : {Way::kUp, Way::kDown}) {
    queued_[at(receiver)].clear();
    network_.loop().after(
        network_.delay_ns(), lives_[at(receiver)],
        [self = shared_from_this(), receiver] { self->closed_by_peer(receiver); });
  }
}

void Connection::send(Way way, std::function<void()> message) {
  if (reset_) return;
  queued_[at(way)].push_back(std::move(message));
  if (!std::exchange(pumping_[at(way)], true)) pump(way);
}

// One message after another, each on its way for a time of its own.
void Connection::pump(Way way) {
  network_.loop().after(network_.delay_ns(), nullptr, [self = shared_from_this(), way] {
    auto& network = self->network_;
    if (network.is_cut(self->node_, way)) return self->pump(way);
    auto& queue = self->queued_[at(way)];
    if (queue.empty()) {  // it was reset
      self->pumping_[at(way)] = false;
      return;
    }
    auto message = std::move(queue.front());
    queue.pop_front();
    network.loop().after(0, self->lives_[at(way)], [self, way, message = std::move(message)] {
      if (self->open(way)) message();
    });
    if (queue.empty())
      self->pumping_[at(way)] = false;
    else
      self->pump(way);
  });
}

void Connection::close(Way way, bool told) {
  const Way own = way == Way::kUp ? Way::kDown : Way::kUp;  // what it would have received
  if (!std::exchange(open_[at(own)], false)) return;
  const auto closed = [self = shared_from_this(), way] { self->closed_by_peer(way); };
  if (told) return send(way, closed);
  network_.loop().after(kKeepaliveNs, lives_[at(way)], closed);
}

void Connection::closed_by_peer(Way receiver) {
  if (!std::exchange(open_[at(receiver)], false)) return;
  const auto told =
      std::exchange(receiver == Way::kUp ? on_closed_at_coordinator : on_closed_at_node, nullptr);
  if (told) told();
}

}  // namespace tierpilot::dst
