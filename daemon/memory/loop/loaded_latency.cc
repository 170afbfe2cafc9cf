#include "daemon/memory/loop/loaded_latency.h"

#include <optional>

#include "daemon/probe/loops/chase.h"
#include "daemon/probe/memory/memory.h"

namespace tierpilot {
namespace {

constexpr size_t kHopsPerBatch = 32;
constexpr double kNewest = 0.5;  // the latest look's weight

}  // namespace

struct LoadedLatencyProbe::Sentinel {
  std::unique_ptr<TierMemory> memory;
  std::optional<Chase> chase;
  std::optional<double> latency_ns;
  std::string unavailable;
};

LoadedLatencyProbe::LoadedLatencyProbe(const std::vector<PagingTier>& tiers,
                                       const LoadedLatencyOptions& options)
    : options_(options), sentinels_(tiers.size()) {
  for (size_t t = 0; t < tiers.size(); ++t) {
    auto memory =
        allocate_on_node(tiers[t].nodes.front(), options.footprint_bytes, PageSize::kBase);
    if (!memory) {
      sentinels_[t].unavailable = "unavailable: " + memory.error().message;
      continue;
    }
    sentinels_[t].memory = std::move(*memory);
    sentinels_[t].chase.emplace(sentinels_[t].memory->data(), sentinels_[t].memory->size(),
                                kCacheLineBytes, t + 1);
  }
}

LoadedLatencyProbe::~LoadedLatencyProbe() = default;

void LoadedLatencyProbe::refresh(std::vector<PagingTier>& tiers) {
  for (size_t t = 0; t < sentinels_.size() && t < tiers.size(); ++t) {
    auto& sentinel = sentinels_[t];
    tiers[t].loaded_latency_unavailable = sentinel.unavailable;
    if (!sentinel.chase) continue;
    const double now_ns = sentinel.chase
                              ->run({.hops_per_batch = kHopsPerBatch,
                                     .max_batches = options_.hops / kHopsPerBatch,
                                     .max_time = std::chrono::milliseconds(5)})
                              .p50_ns();
    const double before_ns = sentinel.latency_ns.value_or(now_ns);
    sentinel.latency_ns = before_ns * (1 - kNewest) + now_ns * kNewest;
    tiers[t].loaded_latency_ns = sentinel.latency_ns;
  }
}

}  // namespace tierpilot
