#include "policies/placement/published/experience.h"

#include <string_view>

namespace tierpilot {

uint64_t hash_of(const Observation& seen) {
  const std::string_view bytes(reinterpret_cast<const char*>(seen.values.data()),
                               seen.values.size() * sizeof(float));
  uint64_t hash = std::hash<std::string_view>{}(bytes);
  mix_hash(hash, std::hash<SlotMask>{}(seen.candidates));
  return hash;
}

}  // namespace tierpilot
