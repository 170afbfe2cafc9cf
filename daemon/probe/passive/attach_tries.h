// What the kernel really allows: each try loads and attaches a program that does nothing, then
// drops it, or makes a map of the type.
#pragma once

#include <string>
#include <vector>

#include "daemon/probe/passive/capabilities.h"

namespace tierpilot {

class KernelBtf;

struct FeatureReport {
  std::string feature;
  bool on = false;
  std::string reason;  // when off "unavailable: ..."; when on, details worth knowing
};

// `btf` may be null.
std::vector<FeatureReport> try_programs(const KernelBtf* btf, const Capabilities& capabilities);
std::vector<FeatureReport> try_maps(const Capabilities& capabilities);

}  // namespace tierpilot
