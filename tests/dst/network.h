// Connections between nodes and the coordinator, as TCP has them: in order each way, late when the
// way is cut, and each end finds out for itself that the other is gone.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/dst/loop.h"
#include "tests/dst/plan.h"
#include "tests/dst/random.h"

namespace tierpilot::dst {

enum class Way { kUp, kDown };  // to the coordinator, to the node

class Connection;
using ConnectionPtr = std::shared_ptr<Connection>;

class Network {
 public:
  Network(Loop& loop, uint64_t seed) : loop_(loop), random_(seed, "network") {}
  // What was on its way is lost.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  ConnectionPtr connect(int node, LifePtr node_life, LifePtr coordinator_life);

  void cut(int node, Way way, int64_t until_ns);
  // What its connection has on its way either way is lost, and each end hears that it broke.
  void reset(int node);
  void heal() { cut_until_ns_ = {}; }
  bool is_cut(int node, Way way) const { return loop_.now_ns() < cut_until_ns_[index(node, way)]; }
  // Data flows between two nodes.
  bool reaches(int a, int b) const;
  int64_t delay_ns() {
    return random_.chance(0.05) ? random_.between(kMs, 200 * kMs)
                                : random_.between(kMs / 20, 3 * kMs);
  }
  Loop& loop() { return loop_; }

 private:
  static size_t index(int node, Way way) {
    return static_cast<size_t>(node) * 2 + (way == Way::kUp ? 0 : 1);
  }
  Loop& loop_;
  Random random_;
  std::array<int64_t, 2 * kNodes> cut_until_ns_{};
  std::vector<std::weak_ptr<Connection>> connections_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Network& network, int node, LifePtr node_life, LifePtr coordinator_life)
      : network_(network), node_(node), lives_{std::move(coordinator_life), std::move(node_life)} {}

  // Happens at the other end, unless that end has closed by then.
  void send(Way way, std::function<void()> message);
  // By the end that sends this way; the other end is told as soon as the network can. Without
  // `told`, as when a machine loses power, it finds out when it asks whether anybody is there.
  void close(Way way, bool told = true);
  void reset();
  int node() const { return node_; }
  bool open(Way receiver) const { return open_[at(receiver)]; }
  // Nobody hears of anything any more.
  void forget();
  // Called where the other end has closed, once.
  std::function<void()> on_closed_at_coordinator, on_closed_at_node;

 private:
  static size_t at(Way receiver) { return receiver == Way::kUp ? 0 : 1; }
  void pump(Way way);
  void closed_by_peer(Way receiver);

  Network& network_;
  const int node_;
  std::array<LifePtr, 2> lives_;  // of the receivers
  std::array<bool, 2> open_{true, true};
  std::array<std::deque<std::function<void()>>, 2> queued_;
  std::array<bool, 2> pumping_{};
  bool reset_ = false;
};

}  // namespace tierpilot::dst
