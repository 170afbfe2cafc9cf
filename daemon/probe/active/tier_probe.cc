#include "daemon/probe/active/tier_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/sysroot.h"
#include "daemon/probe/memory/transfer.h"

namespace tierpilot {

void Report::send(ProbeObservation observation) const {
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

void report_no_transfer(const Error& error, const Report& report) {
  for (const auto name : {figure::kEvict, figure::kFirstEvict, figure::kStartEvict,
                          figure::kPromote, figure::kFirstPromote, figure::kStartPromote})
    report.unavailable(name, error.message);
}

void report_transfer(Transfer& transfer, const Report& report) {
  const auto put = [&report](const Result<Moved>& moved, auto rate, auto first_page, auto start) {
    if (!moved) {
      for (const auto name : {rate, first_page, start})
        report.unavailable(name, moved.error().message);
      return;
    }
    report.value(rate, moved->bytes_per_s / 1e9);
    report.value(first_page, moved->first_page_ns);
    if (moved->start_ns)
      report.value(start, *moved->start_ns);
    else
      report.unavailable(start, "between memory nodes single pages move, not files");
  };
  put(transfer.evict(), figure::kEvict, figure::kFirstEvict, figure::kStartEvict);
  put(transfer.promote(), figure::kPromote, figure::kFirstPromote, figure::kStartPromote);
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

uint64_t node_footprint_bytes(const std::vector<TierSpec>& tiers, uint64_t available_bytes) {
  const auto cache = last_level_cache_bytes();
  auto bytes = std::clamp(4 * cache, 64 * kMiB, 256 * kMiB), least = 2 * cache;
  uint64_t nodes = 0;
  for (const auto& tier : tiers) {
    if (tier.is_directory()) continue;
    ++nodes;
    // Measuring must not push anyone's pages out.
    const auto little = tier.capacity_bytes / 16;
    const auto beyond_the_cache = std::min(2 * cache, tier.capacity_bytes / 4);
    bytes = std::min(bytes, std::max(little, beyond_the_cache));
    least = std::min(least, beyond_the_cache);
  }
  // All nodes' is held at once, each with half of it again.
  if (available_bytes > 0 && nodes > 0)
    bytes = std::min(bytes, std::max(least, available_bytes / 2 * 2 / 3 / nodes));
  return std::max(bytes, 4 * kMiB);
}

}  // namespace tierpilot
