#include "daemon/probe/active/initiator.h"

#include <numa.h>
#include <sched.h>

#include <algorithm>
#include <map>

namespace tierpilot {
namespace {

int node_of(int cpu) {
  return numa_available() < 0 ? 0 : std::max(0, numa_node_of_cpu(cpu));
}

}  // namespace

std::vector<Initiator> initiators() {
  cpu_set_t allowed;
  std::map<int, std::vector<int>> by_node;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) by_node[node_of(cpu)].push_back(cpu);
  std::vector<Initiator> all;
  for (auto& [node, cpus] : by_node) all.push_back({node, std::move(cpus)});
  // More than 1,024 CPUs: the mask does not fit.
  if (all.empty()) all.push_back({0, {std::max(0, sched_getcpu())}});
  return all;
}

bool run_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

Initiator stay_on_one_node() {
  const auto all = initiators();
  const int here = node_of(std::max(0, sched_getcpu()));
  const auto at =
      std::find_if(all.begin(), all.end(), [here](const auto& i) { return i.node == here; });
  const auto& chosen = at == all.end() ? all.front() : *at;
  run_on(chosen.cpus);
  return chosen;
}

}  // namespace tierpilot
