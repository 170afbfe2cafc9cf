// What this machine is made of, discovered once and never changed afterwards: a plain value that
// may be copied and read from any thread. What the machine does not tell is an empty optional, and
// the reason is among `warnings` or in the `..._unavailable` text; absent hardware is an empty
// list.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot {

// What the firmware (ACPI HMAT) or a CXL device's CDAT promises about a node's memory when it is
// used from its best initiators; the kernel's "access class 0".
struct HmatFigures {
  std::vector<int> initiator_nodes;
  std::optional<int64_t> read_latency_ns;
  std::optional<int64_t> write_latency_ns;
  std::optional<int64_t> read_bandwidth_mb_per_s;
  std::optional<int64_t> write_bandwidth_mb_per_s;
};

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;                       // empty: memory without CPUs, such as CXL
  std::optional<uint64_t> memory_total_bytes;  // 0: a node of CPUs only
  std::optional<uint64_t> memory_free_bytes;
  std::map<int, int> distance_to;  // node id -> SLIT distance, 10 is local
  std::optional<HmatFigures> hmat;

  bool has_cpu() const { return !cpus.empty(); }
  bool has_memory() const { return memory_total_bytes.value_or(0) > 0; }
};

struct CxlMemdev {
  std::string name;  // "mem0"
  std::optional<uint64_t> ram_bytes;
  std::optional<uint64_t> pmem_bytes;
  std::optional<int> numa_node;  // of the host bridge, not of the memory
};

struct CxlRegion {
  std::string name;  // "region0"
  std::string mode;  // "ram" or "pmem"; empty: the kernel does not tell
  std::optional<uint64_t> size_bytes;
  std::optional<uint64_t> base_address;
  std::optional<int> interleave_ways;
  std::vector<std::string> targets;  // endpoint decoders: "decoder2.0"
  std::vector<int> nodes;            // NUMA nodes whose memory lies in it
};

struct CxlDecoder {
  std::string name;  // "decoder0.0"
  std::string mode;  // "ram", "pmem", "none"; empty on switches and host bridges
  std::optional<uint64_t> size_bytes;
};

enum class DaxSource { kCxl, kPmem, kOther };  // kOther: reserved by firmware (HBM, EFI_MEMORY_SP)

struct DaxDevice {
  std::string name;    // "dax0.0"
  std::string driver;  // "kmem": system RAM; "device_dax": mapped by programs; empty: none bound
  DaxSource source = DaxSource::kOther;
  std::optional<uint64_t> size_bytes;
  std::optional<int> target_node;  // the NUMA node its memory becomes under kmem
};

// The kernel's own ranking (/sys/devices/virtual/memory_tiering): a lower id is faster.
struct KernelMemoryTier {
  int id = 0;
  std::vector<int> nodes;
};

struct Gpu {
  int index = 0;
  std::string name;
  std::string uuid;
  std::string pci_address;  // "0000:01:00.0"
  std::optional<uint64_t> memory_total_bytes;
  std::optional<uint64_t> memory_free_bytes;
  std::optional<int> utilisation_percent;
  std::optional<int> numa_node;
  // Of its kind: what predictors compare kinds by.
  std::optional<double> compute_capability;  // 8.9
  std::optional<uint32_t> cores;             // CUDA's
  std::optional<uint32_t> sm_clock_mhz;      // the most, of this and of the memory's
  std::optional<uint32_t> memory_clock_mhz;
  std::optional<uint32_t> bus_width_bits;
};

struct Topology {
  std::vector<int> cpus_online;
  std::vector<NumaNode> nodes;  // by id, which may have gaps
  std::vector<CxlMemdev> cxl_memdevs;
  std::vector<CxlRegion> cxl_regions;
  std::vector<CxlDecoder> cxl_decoders;
  std::vector<DaxDevice> dax_devices;
  std::vector<KernelMemoryTier> kernel_tiers;  // fast to slow
  std::string kernel_tiers_unavailable;        // the reason when the kernel does not rank
  std::vector<Gpu> gpus;
  std::string gpus_unavailable;       // the reason when GPUs could not be asked for
  std::vector<std::string> warnings;  // files that exist but could not be read or understood
  // The paths of those that may be read a moment later: what they tell is not known, not gone.
  std::vector<std::string> unread;

  const NumaNode* node(int id) const;
};

struct DiscoverOptions {
  // NVML's soname or path. Empty: GPUs are not looked for (a sysroot has none).
  std::string nvml_library = "libnvidia-ml.so.1";
  // A driver that has not answered by then hangs: there are no GPUs.
  std::chrono::milliseconds nvml_patience = std::chrono::seconds(10);
  // Called if it tells of GPUs after that, from a thread of its own.
  std::function<void()> gpus_came_late;
};

// kUnavailable when the root shows neither NUMA nodes nor CPUs; everything less is a warning.
Result<Topology> discover_topology(const Sysroot& sysroot, const DiscoverOptions& options = {});

// For people: a tree of nodes, devices and GPUs, with a trailing newline.
std::string format_tree(const Topology& topology);

}  // namespace tierpilot
