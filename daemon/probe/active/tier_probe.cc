#include "daemon/probe/active/tier_probe.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/sysroot.h"

namespace tierpilot {

void Report::send(Observation observation) const {
  observation.tier = tier_;
  sink_(observation);
}
void Report::value(std::string_view figure, double value) const {
  send({.figure = std::string(figure), .value = value});
}
void Report::latency(LatencyCounts counts) const {
  send({.figure = std::string(figure::kLatency), .latency_counts = std::move(counts)});
}
void Report::method(std::string text) const {
  send({.figure = std::string(figure::kMethod), .text = std::move(text)});
}
void Report::unavailable(std::string_view figure, std::string reason) const {
  send({.figure = std::string(figure), .text = std::move(reason)});
}

// Not sysconf(_SC_LEVEL3_CACHE_SIZE): in virtual machines it multiplies by sockets that are not
// there.
uint64_t last_level_cache_bytes() {
  const Sysroot sysroot;
  for (int index = 4; index >= 0; --index)
    if (auto text =
            sysroot.read(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index)))
      if (auto bytes = parse_bytes(*text + "iB")) return *bytes;  // the kernel writes "32768K"
  return 32 << 20;
}

}  // namespace tierpilot
