// Who accesses memory while it is measured: the CPUs of one NUMA node that this process may use.
#pragma once

#include <vector>

namespace tierpilot {

struct Initiator {
  int node = 0;
  std::vector<int> cpus;
};

// By node; a kernel without NUMA policies has one. At least one, with at least one CPU.
std::vector<Initiator> initiators();

// Binds the calling thread, and threads it makes later, to these CPUs. False: it stays as it was.
bool run_on(const std::vector<int>& cpus);

// Keeps this process on the node it runs on, so that every tier is seen from one place.
Initiator stay_on_one_node();

}  // namespace tierpilot
