#include <algorithm>

#include "daemon/probe/active/initiator.h"
#include "daemon/probe/active/sweep.h"

namespace tierpilot {
namespace {

constexpr int kMostSweepThreads = 64;

template <class Add>
void for_each_pair(const std::vector<TierSpec>& tiers, const Add& add) {
  for (const auto& initiator : initiators())
    for (size_t tier = 0; tier < tiers.size(); ++tier)
      if (!tiers[tier].is_directory()) add(initiator, tier);
}

}  // namespace

std::vector<SweepPoint> latency_points(const std::vector<TierSpec>& tiers) {
  std::vector<SweepPoint> points;
  for_each_pair(tiers, [&](const Initiator& initiator, size_t tier) {
    for (const auto pages : {PageSize::kBase, PageSize::kHuge})
      points.push_back({.kind = SweepKind::kLatency,
                        .tier = tier,
                        .initiator_node = initiator.node,
                        .pages = pages});
  });
  return points;
}

std::vector<SweepPoint> loaded_points(const std::vector<TierSpec>& tiers) {
  std::vector<SweepPoint> points;
  for_each_pair(tiers, [&](const Initiator& initiator, size_t tier) {
    for (const int percent : {0, 10, 25, 50, 100})
      points.push_back({.kind = SweepKind::kLoaded,
                        .tier = tier,
                        .initiator_node = initiator.node,
                        .load_percent = percent});
  });
  return points;
}

std::vector<SweepPoint> bandwidth_points(const std::vector<TierSpec>& tiers) {
  std::vector<SweepPoint> points;
  for_each_pair(tiers, [&](const Initiator& initiator, size_t tier) {
    const int cpus = std::min(static_cast<int>(initiator.cpus.size()), kMostSweepThreads);
    std::vector<int> counts;
    for (int threads = 1; threads < cpus; threads *= 2) counts.push_back(threads);
    counts.push_back(cpus);
    for (const auto stream : {StreamKind::kRead, StreamKind::kWrite, StreamKind::kCopy})
      for (const int threads : counts)
        points.push_back({.kind = SweepKind::kBandwidth,
                          .tier = tier,
                          .initiator_node = initiator.node,
                          .stream = stream,
                          .threads = threads});
  });
  return points;
}

std::vector<SweepPoint> move_points(const std::vector<TierSpec>& tiers) {
  struct Batch {
    PageSize pages;
    size_t bytes;
  };
  constexpr size_t kKiB = 1 << 10, kMiB = 1 << 20;
  constexpr Batch kNodeBatches[] = {{PageSize::kBase, 4 * kKiB}, {PageSize::kBase, 128 * kKiB},
                                    {PageSize::kBase, 2 * kMiB}, {PageSize::kBase, 16 * kMiB},
                                    {PageSize::kHuge, 2 * kMiB}, {PageSize::kHuge, 16 * kMiB}};
  constexpr Batch kFileBatches[] = {
      {PageSize::kBase, 4 * kKiB}, {PageSize::kBase, 128 * kKiB}, {PageSize::kBase, 2 * kMiB}};
  std::vector<SweepPoint> points;
  const auto add = [&points](size_t tier, const Batch& batch) {
    points.push_back({.kind = SweepKind::kMove,
                      .tier = tier,
                      .pages = batch.pages,
                      .slower_tier = tier + 1,
                      .batch_bytes = batch.bytes});
  };
  for (size_t tier = 0; tier + 1 < tiers.size(); ++tier)
    if (tiers[tier].is_directory() || tiers[tier + 1].is_directory())
      for (const auto& batch : kFileBatches) add(tier, batch);
    else
      for (const auto& batch : kNodeBatches) add(tier, batch);
  return points;
}

}  // namespace tierpilot
