// The discoverers, one per subject, in the order discover_topology() runs them. Internal.
#pragma once

#include "daemon/topology/topology.h"

namespace tierpilot {

// Reads optional files: what is absent is nothing, what is there but wrong is noted as a warning.
class FactReader {
 public:
  FactReader(const Sysroot& sysroot, Topology& topology)
      : sysroot_(sysroot), warnings_(topology.warnings), unread_(topology.unread) {}

  const Sysroot& sysroot() const { return sysroot_; }
  std::optional<std::string> text(const std::string& path);
  // Decimal, or hexadecimal after 0x.
  std::optional<uint64_t> number(const std::string& path);
  // A node id; "-1" (the kernel's "none") is nothing.
  std::optional<int> node_id(const std::string& path);
  std::vector<int> ids(const std::string& path);
  // Names in a directory.
  std::vector<std::string> list(const std::string& path);
  void warn(std::string what) { warnings_.push_back(std::move(what)); }
  // A warning, of what may be read a moment later.
  void miss(const std::string& path, const Error& why);

 private:
  const Sysroot& sysroot_;
  std::vector<std::string>& warnings_;
  std::vector<std::string>& unread_;
};

std::vector<NumaNode> discover_nodes(FactReader& facts);
std::optional<HmatFigures> discover_hmat(FactReader& facts, int node);
std::vector<KernelMemoryTier> discover_kernel_tiers(FactReader& facts);
void discover_cxl(FactReader& facts, Topology& topology);  // needs topology.nodes
std::vector<DaxDevice> discover_dax(FactReader& facts);
void discover_gpus(FactReader& facts, const DiscoverOptions& options, Topology& topology);

}  // namespace tierpilot
