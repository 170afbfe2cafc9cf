#include <fmt/format.h>

#include "daemon/topology/discover.h"
#include "daemon/topology/nvml.h"

namespace tierpilot {

void discover_gpus(FactReader& facts, const std::string& nvml_library, Topology& topology) {
  if (nvml_library.empty()) {
    topology.gpus_unavailable = "not looked for";
    return;
  }
  auto gpus = Nvml::open(nvml_library).and_then([&](const Nvml& nvml) {
    return nvml.gpus(topology.warnings);
  });
  if (!gpus) {
    topology.gpus_unavailable = gpus.error().message;
    return;
  }
  for (auto& gpu : *gpus)
    if (!gpu.pci_address.empty())
      gpu.numa_node =
          facts.node_id(fmt::format("/sys/bus/pci/devices/{}/numa_node", gpu.pci_address));
  topology.gpus = std::move(*gpus);
}

}  // namespace tierpilot
