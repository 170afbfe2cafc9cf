#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "daemon/probe/active/tier_probe.h"
#include "daemon/probe/loops/chase.h"
#include "daemon/probe/loops/stream.h"
#include "daemon/probe/memory/memory.h"

namespace tierpilot {
namespace {

// A hop is a read of the storage: some 60 us on NVMe, 10 ms on a disk that turns.
constexpr ChaseOptions kColdChase{
    .hops_per_batch = 1, .max_batches = 512, .max_time = std::chrono::milliseconds(100)};

class DirectoryProbe final : public TierProbe {
 public:
  DirectoryProbe(std::unique_ptr<TierMemory> chased, std::unique_ptr<TierMemory> written,
                 DirectoryAccess access, int threads)
      : chased_(std::move(chased)),
        written_(std::move(written)),
        chase_(chased_->data(), chased_->size(), kCacheLineBytes, 1),
        access_(access),
        threads_(threads) {}

  std::string latency_method() const override {
    return fmt::format("latency: dependent chase over {} of memkind file memory, {}",
                       format_bytes(chased_->size()), how_pages_arrive());
  }
  std::string bandwidth_method() const override {
    return access_ == DirectoryAccess::kPaged
               ? "bandwidth: reads of dropped pages, writes up to stable storage (msync)"
               : fmt::format("bandwidth: {} thread{}", threads_, threads_ == 1 ? "" : "s");
  }

  void measure_latency(const Report& report) override {
    if (access_ != DirectoryAccess::kPaged) {
      report.unavailable(figure::kCachedLatency, "its accesses never wait for a page-in");
      return report.latency(chase_.run({}).counts);
    }
    if (!make_cold(MADV_RANDOM, figure::kLatency, report)) return;  // no read-ahead
    report.latency(chase_.run(kColdChase).counts);
    madvise(chased_->data(), chased_->size(), MADV_SEQUENTIAL);
    read_bytes_per_s(chased_->data(), chased_->size(), threads_);
    report.value(figure::kCachedLatency, chase_.run({}).p50_ns());
  }

  void measure_bandwidth(const Report& report) override {
    if (access_ != DirectoryAccess::kPaged || make_cold(MADV_SEQUENTIAL, figure::kRead, report))
      report.value(figure::kRead,
                   read_bytes_per_s(chased_->data(), chased_->size(), threads_) / 1e9);
    measure_write(report);
  }

 private:
  const char* how_pages_arrive() const {
    switch (access_) {
      case DirectoryAccess::kPaged:
        return "pages dropped first: a hop is a page-in";
      case DirectoryAccess::kDirect:
        return "direct (DAX)";
      case DirectoryAccess::kMemory:
        break;
    }
    return "in memory (tmpfs)";
  }

  bool make_cold(int advice, std::string_view figure, const Report& report) {
    madvise(chased_->data(), chased_->size(), advice);
    const auto dropped = drop_pages(*chased_);
    if (!dropped) report.unavailable(figure, dropped.error().message);
    return dropped.has_value();
  }

  void measure_write(const Report& report) {
    const auto start = std::chrono::steady_clock::now();
    write_bytes_per_s(written_->data(), written_->size(), threads_);
    if (msync(written_->data(), written_->size(), MS_SYNC) != 0)
      return report.unavailable(figure::kWrite, fmt::format("msync: {}", strerror(errno)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    report.value(figure::kWrite, static_cast<double>(written_->size()) / took.count() / 1e9);
  }

  std::unique_ptr<TierMemory> chased_, written_;
  Chase chase_;
  DirectoryAccess access_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<TierProbe>> make_directory_probe(const TierSpec& tier,
                                                        const ProbeOptions& options, int threads) {
  auto access = directory_access(tier.directory);
  if (!access) return tl::unexpected(access.error());
  auto chased = allocate_in_directory(tier.directory, options.directory_footprint_bytes);
  if (!chased) return tl::unexpected(chased.error());
  auto written = allocate_in_directory(tier.directory, options.transfer_bytes);
  if (!written) return tl::unexpected(written.error());
  return std::make_unique<DirectoryProbe>(std::move(*chased), std::move(*written), *access,
                                          threads);
}

}  // namespace tierpilot
