// Groups of what the dqn sees, that can be left out to find out what they are worth.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tierpilot {

enum class FeatureGroup : uint8_t {
  kTime,    // estimated wait, service, eviction, run, and what they are above the best candidate's
  kLoad,    // of the node's units
  kMemory,  // room in its fast tier
  kLocality,  // what it holds of the data
  kSpeed,     // its measured rates against those of the others
  kGpu,
  kRequest,  // sizes, units, read or write
  kContext,  // the cluster as a whole, nodes that are no candidates included
};
inline constexpr size_t kFeatureGroups = 8;

// One bit per group; a masked group reads as zero.
using FeatureMask = uint8_t;
inline constexpr FeatureMask kAllFeatures = 0xFF;

template <class... Groups>
constexpr FeatureMask groups(Groups... of) {
  return static_cast<FeatureMask>(((1U << static_cast<unsigned>(of)) | ...));
}
constexpr FeatureMask without(FeatureGroup group) {
  return static_cast<FeatureMask>(kAllFeatures & ~groups(group));
}

}  // namespace tierpilot
