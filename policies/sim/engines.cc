#include "policies/sim/engines.h"

#include <algorithm>

namespace tierpilot::sim {
namespace {

constexpr uint32_t kHandling = UINT32_MAX;  // no task runs, but what the daemons do for one

}  // namespace

Engines::Engines(const ClusterSpec& cluster, EventQueue& events) : events_(events) {
  for (const NodeGroup& group : cluster.groups) {
    uint32_t machine = UINT32_MAX;
    if (group.shared_cores > 0) {
      machine = static_cast<uint32_t>(machines_.size());
      machines_.push_back({.cores = group.shared_cores, .running = {}});
    }
    for (uint32_t i = 0; i < group.count; ++i)
      nodes_.push_back({.group = &group, .machine = machine, .ready = {}});
  }
}

void Engines::make_ready(uint32_t node, uint32_t task, QueuePlace place, uint32_t units) {
  auto& ready = nodes_[node].ready;
  const auto at = std::upper_bound(ready.begin(), ready.end(), place,
                                   [](QueuePlace p, const Ready& r) { return p < r.place; });
  ready.insert(at, {place, task, units});
}

bool Engines::start_next(uint32_t index, uint32_t& task) {
  Node& node = nodes_[index];
  if (node.ready.empty() || node.busy + node.ready.front().units > node.group->units) return false;
  node.busy += node.ready.front().units;
  busy_ += node.ready.front().units;
  task = node.ready.front().task;
  node.ready.erase(node.ready.begin());
  return true;
}

void Engines::run(int64_t now_ns, uint32_t index, uint32_t task, uint32_t generation,
                  double seconds, uint32_t units) {
  const Node& node = nodes_[index];
  if (node.machine == UINT32_MAX)
    return events_.push(after_s(now_ns, seconds), EventKind::kRunEnd, task, generation);
  Machine& machine = machines_[node.machine];
  machine.settle(now_ns);
  machine.begin(seconds, {task, index}, units);
  schedule(now_ns, node.machine);
}

double Engines::handle(int64_t now_ns, uint32_t index) {
  if (machines_.empty()) return 1;  // without a look at the node
  const Node& node = nodes_[index];
  const double work_s = node.group->handling_core_s / 3;
  if (node.machine == UINT32_MAX || work_s == 0) return 1;
  Machine& machine = machines_[node.machine];
  machine.settle(now_ns);
  machine.begin(work_s, {kHandling, index}, 1);
  schedule(now_ns, node.machine);
  return 1 / machine.speed();
}

double Engines::ran_s(int64_t now_ns, uint32_t index, uint32_t task, int64_t started_ns) {
  const Node& node = nodes_[index];
  if (node.machine == UINT32_MAX) return static_cast<double>(now_ns - started_ns) * 1e-9;
  Machine& machine = machines_[node.machine];
  machine.settle(now_ns);
  for (const auto& running : machine.running)
    if (running.task.task == task) return machine.served_s - running.began_at_s;
  return 0;
}

void Engines::end(int64_t now_ns, uint32_t index, uint32_t task, uint32_t units) {
  Node& node = nodes_[index];
  node.busy -= units;
  busy_ -= units;
  if (node.machine == UINT32_MAX) return;
  Machine& machine = machines_[node.machine];
  machine.settle(now_ns);
  machine.units -= units;
  std::erase_if(machine.running, [&](const auto& running) { return running.task.task == task; });
  schedule(now_ns, node.machine);
}

void Engines::forget_ready(uint32_t node, uint32_t task) {
  auto& ready = nodes_[node].ready;
  ready.erase(std::remove_if(ready.begin(), ready.end(),
                             [&](const Ready& waiting) { return waiting.task == task; }),
              ready.end());
}

void Engines::withdraw(uint32_t node, uint32_t units) {
  nodes_[node].busy -= units;
  busy_ -= units;
}

double Engines::transfer(int64_t now_ns, uint32_t index, bool begins) {
  if (machines_.empty()) return 1;
  const Node& node = nodes_[index];
  if (node.machine == UINT32_MAX) return 1;
  Machine& machine = machines_[node.machine];
  machine.settle(now_ns);
  begins ? ++machine.transfers : --machine.transfers;
  schedule(now_ns, node.machine);
  return 1 / machine.speed();
}

void Engines::Machine::begin(double seconds, Started what, uint32_t its_units) {
  units += its_units;
  running.push_back({served_s, served_s + seconds, what, its_units});
}

double Engines::Machine::speed() const {
  const double wanted = units + kCoresOfTransfer * transfers;
  return wanted > cores ? cores / wanted : 1;
}

void Engines::Machine::settle(int64_t now_ns) {
  served_s += static_cast<double>(now_ns - settled_ns) * 1e-9 * speed();
  settled_ns = now_ns;
}

void Engines::schedule(int64_t now_ns, uint32_t index) {
  Machine& machine = machines_[index];
  ++machine.generation;
  if (machine.running.empty()) return;
  double next_s = machine.running.front().ends_at_s;
  for (const auto& running : machine.running) next_s = std::min(next_s, running.ends_at_s);
  const double left_s = std::max(next_s - machine.served_s, 0.0) / machine.speed();
  events_.push(after_s(now_ns, left_s), EventKind::kCores, index, machine.generation);
}

const std::vector<Engines::Started>& Engines::ended_on_cores(const Event& event) {
  ended_.clear();
  Machine& machine = machines_[event.subject];
  if (machine.generation != event.generation) return ended_;
  machine.settle(event.at_ns);
  constexpr double kRoundingS = 1e-9;
  std::erase_if(machine.running, [&](const Machine::Running& running) {
    if (running.ends_at_s > machine.served_s + kRoundingS) return false;
    const bool handling = running.task.task == kHandling;
    if (handling)
      machine.units -= running.units;
    else
      ended_.push_back(running.task);  // end() takes it from the list
    return handling;
  });
  if (ended_.empty()) schedule(event.at_ns, event.subject);
  return ended_;
}

}  // namespace tierpilot::sim
