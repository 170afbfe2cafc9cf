#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/process/available_memory.h"
#include "daemon/probe/active/tier_probe.h"
#include "daemon/probe/loops/chase.h"
#include "daemon/probe/loops/stream.h"
#include "daemon/probe/memory/memory.h"

namespace tierpilot {
namespace {

class NodeProbe final : public TierProbe {
 public:
  NodeProbe(std::unique_ptr<TierMemory> chased, std::unique_ptr<TierMemory> streamed, int threads)
      : chased_(std::move(chased)),
        streamed_(std::move(streamed)),
        chase_(chased_->data(), chased_->size(), kCacheLineBytes, 1),
        threads_(threads) {}

  std::string latency_method() const override {
    return fmt::format("latency: dependent chase over {} (last-level cache {})",
                       format_bytes(chased_->size()), format_bytes(last_level_cache_bytes()));
  }
  std::string bandwidth_method() const override {
    return fmt::format("bandwidth: {} thread{}", threads_, threads_ == 1 ? "" : "s");
  }

  // What linked the chain, or streamed over it, has left some of it in the caches: of 128 MiB up to
  // a quarter in a cache of 32 MiB that nobody else uses. By this thread alone: the caches are its.
  void measure_latency(const Report& report) override {
    read_bytes_per_s(streamed_->data(), streamed_->size(), 1);
    report.latency(chase_.run({}).counts);
  }

  void measure_bandwidth(const Report& report) override {
    report.value(figure::kRead, read_bytes_per_s(chased_->data(), chased_->size(), threads_) / 1e9);
    report.value(figure::kWrite,
                 write_bytes_per_s(streamed_->data(), streamed_->size(), threads_) / 1e9);
    report.value(
        figure::kCopy,
        copy_bytes_per_s(streamed_->data(), chased_->data(), streamed_->size(), threads_) / 1e9);
  }

 private:
  std::unique_ptr<TierMemory> chased_, streamed_;
  Chase chase_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<TierProbe>> make_node_probe(const TierSpec& tier,
                                                   const ProbeOptions& options, int threads) {
  const auto bytes = options.node_footprint_bytes;
  constexpr uint64_t kLeft = 32 << 20;  // for others
  const auto available = available_memory_bytes();
  if (available && bytes + bytes / 2 + kLeft > static_cast<uint64_t>(*available))
    return fail(
        ErrorCode::kExhausted,
        fmt::format("measuring takes {}, and {} of memory can be had: free some, or raise the "
                    "limit of its cgroup",
                    format_bytes(bytes + bytes / 2),
                    format_bytes(static_cast<uint64_t>(*available))));
  auto chased = allocate_on_node(tier.numa_node, bytes, PageSize::kHuge);
  if (!chased) return tl::unexpected(chased.error());
  auto streamed =
      allocate_on_node(tier.numa_node, std::max<size_t>(bytes / 2, kHugePage), PageSize::kHuge);
  if (!streamed) return tl::unexpected(streamed.error());
  return std::make_unique<NodeProbe>(std::move(*chased), std::move(*streamed), threads);
}

}  // namespace tierpilot
