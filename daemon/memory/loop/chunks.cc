#include "daemon/memory/loop/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tierpilot {
namespace {

constexpr size_t kPagesPerCall = 4096;

size_t sample_size(const PagingChunk& chunk, const ChunkOptions& options) {
  const uint64_t pages = (chunk.end - chunk.start) / chunk.page_bytes;
  return static_cast<size_t>(std::min<uint64_t>(pages, options.samples_per_chunk));
}

// Evenly spread: page i of n lies in the chunk's i-th n-th.
void add_sample(const PagingChunk& chunk, size_t samples, uint64_t round,
                std::vector<void*>& pages) {
  const uint64_t all = (chunk.end - chunk.start) / chunk.page_bytes;
  for (size_t i = 0; i < samples; ++i) {
    const uint64_t first = all * i / samples, next = all * (i + 1) / samples;
    // Odd steps reach every page in turn.
    const uint64_t page = first + round * 7919 % (next - first);
    pages.push_back(reinterpret_cast<void*>(chunk.start + page * chunk.page_bytes));
  }
}

std::vector<int> tier_by_node(std::span<const PagingTier> tiers) {
  std::vector<int> tier_of;
  for (size_t t = 0; t < tiers.size(); ++t)
    for (const int node : tiers[t].nodes) {
      tier_of.resize(std::max<size_t>(tier_of.size(), static_cast<size_t>(node) + 1), -1);
      tier_of[static_cast<size_t>(node)] = static_cast<int>(t);
    }
  return tier_of;
}

void count_sample(PagingChunk& chunk, std::span<const int> status,
                  const std::vector<int>& tier_of) {
  std::array<uint32_t, kMaxTiers> seen{};
  for (const int node : status)
    if (node >= 0 && static_cast<size_t>(node) < tier_of.size() &&
        tier_of[static_cast<size_t>(node)] >= 0)
      ++seen[static_cast<size_t>(tier_of[static_cast<size_t>(node)])];
  const uint64_t pages = (chunk.end - chunk.start) / chunk.page_bytes;
  for (size_t t = 0; t < kMaxTiers; ++t)
    chunk.pages_in_tier[t] =
        static_cast<uint32_t>(pages * seen[t] / std::max<size_t>(status.size(), 1));
}

// One access more than were seen is always possible.
float heat_error(const HeatRegion& region, const HeatEvidence& evidence) {
  const double seconds =
      evidence.observed_s * std::min<double>(region.updates, evidence.updates_in_mean);
  if (seconds <= 0) return 0;
  return static_cast<float>(std::sqrt((region.heat + 1 / seconds) / seconds));
}

Status locate(PageKernel& kernel, pid_t pid, std::span<void* const> pages, std::span<int> status) {
  const int err = kernel.locate_pages(pid, pages, status);
  // EINVAL: a zombie, which has no memory any more.
  if (err == -ESRCH || err == -EINVAL)
    return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid));
  if (err < 0) return fail_errno(-err, fmt::format("process {}: where its pages are", pid));
  return {};
}

}  // namespace

std::vector<PagingChunk> cut_chunks(std::span<const HeatRegion> regions, pid_t pid, size_t group,
                                    const ChunkOptions& options, const HeatEvidence& evidence) {
  uint64_t tracked = 0;
  for (const auto& region : regions) tracked += region.bytes();
  const uint64_t even = std::bit_ceil(tracked / std::max<size_t>(options.max_chunks, 1) + 1);
  const uint64_t size = std::max(even, std::bit_ceil(options.min_bytes));
  std::vector<PagingChunk> chunks;
  for (const auto& region : regions) {
    const uint64_t step = std::max(size, region.page_bytes());
    for (uint64_t at = region.start; at < region.end;) {
      const uint64_t end = std::min(region.end, (at / step + 1) * step);
      chunks.push_back({.group = group,
                        .pid = pid,
                        .start = at,
                        .end = end,
                        .page_bytes = static_cast<uint32_t>(region.page_bytes()),
                        .heat_known = region.updates > 0,
                        .heat = region.heat,
                        .heat_error = heat_error(region, evidence)});
      at = end;
    }
  }
  return chunks;
}

Status locate_chunks(PageKernel& kernel, std::span<const PagingTier> tiers,
                     std::span<PagingChunk> chunks, const ChunkOptions& options, uint64_t round) {
  const auto tier_of = tier_by_node(tiers);
  std::vector<void*> pages;
  std::vector<int> status;
  for (size_t first = 0; first < chunks.size();) {
    pages.clear();
    size_t last = first;
    for (; last < chunks.size() && pages.size() < kPagesPerCall; ++last)
      add_sample(chunks[last], sample_size(chunks[last], options), round, pages);
    status.assign(pages.size(), -ENOENT);
    if (auto done = locate(kernel, chunks[first].pid, pages, status); !done) return done;
    std::span<const int> left(status);
    for (; first < last; ++first) {
      const size_t samples = sample_size(chunks[first], options);
      count_sample(chunks[first], left.first(samples), tier_of);
      left = left.subspan(samples);
    }
  }
  return {};
}

}  // namespace tierpilot
