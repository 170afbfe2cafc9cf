#include "daemon/agent/paging/task_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::agent {
namespace {

constexpr const char* kLibrary = "libmemtier.so.0";

// As many nodes of each, so that equal turns are equal shares.
std::vector<int> equal_parts(const PagingTier& fast, const PagingTier& slow) {
  const auto count = static_cast<ptrdiff_t>(std::min(fast.nodes.size(), slow.nodes.size()));
  std::vector<int> nodes(fast.nodes.begin(), fast.nodes.begin() + count);
  nodes.insert(nodes.end(), slow.nodes.begin(), slow.nodes.begin() + count);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

TaskMemory prefer(const PagingTier& tier, const char* which) {
  return {.nodes = tier.nodes,
          .outcome = fmt::format("preferred: NUMA node {}, the {} tier", format_id_list(tier.nodes),
                                 which)};
}

std::string preload(const std::string& library, const Environment& task_env) {
  for (const auto& [name, value] : task_env)
    if (name == "LD_PRELOAD" && !value.empty()) return library + ":" + value;
  return library;
}

TaskMemory split_heap(const MemoryWish& wish, const PagingTier& fast, const PagingTier& slow,
                      const std::string& library, const Environment& task_env) {
  TaskMemory memory;
  // memkind's DRAM kind is whatever the process gets by itself.
  memory.nodes = fast.nodes;
  memory.env = {{"LD_PRELOAD", preload(library, task_env)},
                {"MEMKIND_DAX_KMEM_NODES", fmt::format("{}", fmt::join(slow.nodes, ","))},
                {"MEMKIND_MEM_TIERS",
                 fmt::format("KIND:DRAM,RATIO:{};KIND:KMEM_DAX,RATIO:{};POLICY:STATIC_RATIO",
                             wish.fast_weight, wish.slow_weight)}};
  memory.outcome =
      fmt::format("{}heap {}:{} over NUMA nodes {} and {} by {}; static programs ignore it",
                  wish.kind == MemoryWish::Kind::kInterleave
                      ? "the kernel has unequal weights for all tasks or none, so only the "
                      : "",
                  wish.fast_weight, wish.slow_weight, format_id_list(fast.nodes),
                  format_id_list(slow.nodes), kLibrary);
  return memory;
}

}  // namespace

TaskMemory plan_task_memory(const MemoryWish& wish, const std::vector<PagingTier>& tiers,
                            const Result<std::string>& heap_library, const Environment& task_env) {
  using Kind = MemoryWish::Kind;
  if (wish.kind == Kind::kNone) return {};
  if (tiers.size() < 2) return {.outcome = "no effect: this node has one memory tier"};
  const auto &fast = tiers.front(), &slow = tiers.back();
  if (wish.kind == Kind::kFast) return prefer(fast, "fastest");
  if (wish.kind == Kind::kSlow) return prefer(slow, "slowest");
  if (wish.kind == Kind::kInterleave && wish.fast_weight == wish.slow_weight) {
    auto nodes = equal_parts(fast, slow);
    auto outcome = fmt::format("pages interleaved over NUMA nodes {}", format_id_list(nodes));
    return {.nodes = std::move(nodes), .interleave = true, .outcome = std::move(outcome)};
  }
  if (!heap_library) return {.outcome = "no effect: " + heap_library.error().message};
  return split_heap(wish, fast, slow, *heap_library, task_env);
}

Result<std::string> find_heap_library(const Sysroot& sysroot) {
  constexpr const char* kFolders[] = {"/usr/local/lib", "/usr/lib/" TIERPILOT_MULTIARCH,
                                      "/usr/lib64", "/usr/lib"};
  for (const std::string folder : kFolders)
    if (const auto path = folder + "/" + kLibrary; sysroot.exists(path)) return path;
  return fail(ErrorCode::kNotFound,
              fmt::format("{} is not in /usr/lib: install libmemkind0", kLibrary));
}

}  // namespace tierpilot::agent
