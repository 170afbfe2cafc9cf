#include "tests/chaos/faults.h"

#include <signal.h>

#include <thread>

namespace tierpilot::chaos {

Faults::Faults(test::Cluster& cluster, std::vector<std::unique_ptr<Relay>>& relays,
               const FaultOptions& options)
    : cluster_(cluster), relays_(relays), options_(options), random_(options.seed) {}

void Faults::sleep(int from_ms, int to_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(draw(from_ms, to_ms)));
}

void Faults::strike() {
  using Fault = void (Faults::*)();
  const std::vector<std::pair<const char*, Fault>> faults{
      {"coordinator killed", &Faults::kill_coordinator},
      {"coordinator ended", &Faults::stop_coordinator},
      {"coordinator paused", &Faults::pause_coordinator},
      {"daemon killed", &Faults::kill_daemon},
      {"daemon paused", &Faults::pause_daemon},
      {"partition", &Faults::partition},
      {"daemon ended", &Faults::stop_daemon}};
  const int last = static_cast<int>(faults.size()) - (options_.stops ? 1 : 2);
  const auto& [name, fault] = faults.at(static_cast<size_t>(draw(0, last)));
  ++counts_[name];
  (this->*fault)();
  sleep(0, 300);
}

void Faults::kill_coordinator() {
  cluster_.coordinator().kill_now();
  sleep(0, 800);
  cluster_.start_coordinator();
}

void Faults::stop_coordinator() {
  cluster_.coordinator().end();
  cluster_.start_coordinator();
}

void Faults::pause_coordinator() {
  cluster_.coordinator().signal(SIGSTOP);
  sleep(50, 2'500);
  cluster_.coordinator().signal(SIGCONT);
}

void Faults::kill_daemon() {
  const int node = any_node();
  cluster_.node(node).kill_now();
  sleep(0, 2'500);
  cluster_.start_node(node);
}

void Faults::stop_daemon() {
  const int node = any_node();
  cluster_.node(node).end();
  sleep(0, 500);
  cluster_.start_node(node);
}

// Shorter and longer than the lease.
void Faults::pause_daemon() {
  const int node = any_node();
  cluster_.node(node).signal(SIGSTOP);
  sleep(50, 3'500);
  cluster_.node(node).signal(SIGCONT);
}

void Faults::partition() {
  auto& relay = *relays_.at(static_cast<size_t>(any_node()));
  const int ways = draw(1, 3);
  ++counts_[ways == 1   ? "partition: to the coordinator"
            : ways == 2 ? "partition: from the coordinator"
                        : "partition: both ways"];
  relay.cut(ways & 1, ways & 2);
  sleep(100, 3'500);
  relay.cut(false, false);
}

void Faults::heal() {
  for (auto& relay : relays_) relay->cut(false, false);
  cluster_.coordinator().signal(SIGCONT);
  if (!cluster_.coordinator().running()) cluster_.start_coordinator();
  for (int node = 0; node < options_.nodes; ++node) {
    cluster_.node(node).signal(SIGCONT);
    if (!cluster_.node(node).running()) cluster_.start_node(node);
  }
}

}  // namespace tierpilot::chaos
