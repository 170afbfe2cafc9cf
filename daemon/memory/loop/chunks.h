// From heat regions to chunks that are placed as a whole, and where their pages are.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "daemon/memory/heat/heat_map.h"
#include "daemon/memory/mover/page_kernel.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot {

struct ChunkOptions {
  uint64_t min_bytes = 256 << 10;
  size_t max_chunks = 4096;      // per process: chunks grow with it
  size_t samples_per_chunk = 8;  // pages that are asked for; a small chunk's all are
};

// How much was seen of each page: heats are means of counts, with the errors of counts (Poisson).
struct HeatEvidence {
  double observed_s = 0;       // per update of a region; 0: not known, errors are left out
  double updates_in_mean = 1;  // what the ageing of the heat map lets count
};

// Cuts regions at multiples of the chunk size, so that chunks stay the same while regions change.
std::vector<PagingChunk> cut_chunks(std::span<const HeatRegion> regions, pid_t pid, size_t group,
                                    const ChunkOptions& options, const HeatEvidence& evidence = {});

// Fills pages_in_tier from a sample of each chunk's pages, scaled to its size; `round` shifts the
// sample. All chunks are of one process. kNotFound, kDenied.
Status locate_chunks(PageKernel& kernel, std::span<const PagingTier> tiers,
                     std::span<PagingChunk> chunks, const ChunkOptions& options, uint64_t round);

}  // namespace tierpilot
