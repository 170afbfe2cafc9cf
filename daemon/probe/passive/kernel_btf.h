// What the running kernel says about itself in BTF: arguments of tracepoints, names of enum values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

struct btf;

namespace tierpilot {

// Several MiB while it lives: load, ask, drop.
class KernelBtf {
 public:
  // kUnavailable on a kernel without CONFIG_DEBUG_INFO_BTF.
  static Result<KernelBtf> load();
  // Takes over `types` (btf__free at the end); for tests.
  explicit KernelBtf(::btf* types);

  // Number of arguments of tracepoint `name`, nothing when the kernel has no such tracepoint.
  std::optional<int> tracepoint_args(const std::string& name) const;
  // Ids to attach to, 0 when the kernel has no such function or tracepoint.
  int function_id(const std::string& name) const;
  int tracepoint_id(const std::string& name) const;
  // Bits of a page's flags below the number of its NUMA node, 64 on a kernel for one node: see
  // bpf/nodes.h. Nothing when the types are not there.
  std::optional<uint32_t> node_shift() const;
  // Empty when there is no such enum.
  std::map<uint32_t, std::string> enum_names(const std::string& name) const;

 private:
  struct Free {
    void operator()(::btf* types) const;
  };
  std::unique_ptr<::btf, Free> types_;
};

}  // namespace tierpilot
