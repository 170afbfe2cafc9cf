#include "daemon/memory/heat/damon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "daemon/memory/damon/files.h"
#include "daemon/memory/damon/keeper_client.h"

namespace tierpilot {
namespace {

constexpr double kUsPerS = 1e6;

TrackerTraits traits_of(const DamonAttrs& attrs) {
  return {.kind = TrackerKind::kDamon,
          .resolution =
              fmt::format("up to {} regions; {} ms, a page of each region every {} ms",
                          attrs.max_regions, attrs.aggregation_us / 1000, attrs.sample_us / 1000),
          .blind_spots =
              "hot pages scattered thinly among cold ones; pages that stay in the TLB, which DAMON "
              "does not flush (an emulated CPU's may hold all memory)",
          .effect = "clears accessed bits, which reclaim looks at too",
          .sees_reads = true,
          .sees_repeats = true,
          .ranks_pages = true};
}

// A check finds a page accessed once or a thousand times all the same. Were accesses independent
// (Poisson), a share p of checks would find some at the rate -ln(1-p) per check: that tells busy
// pages from very busy ones long after p itself is near 1.
double access_rate(uint64_t hits, const DamonAttrs& attrs) {
  const double checks =
      static_cast<double>(attrs.aggregation_us) / static_cast<double>(attrs.sample_us);
  const double share = std::min(static_cast<double>(hits) / checks, 1 - 0.5 / checks);
  return -std::log1p(-share) / (static_cast<double>(attrs.sample_us) / kUsPerS);
}

std::vector<AccessSample> samples_of(const std::vector<DamonRegion>& regions,
                                     const DamonAttrs& attrs) {
  std::vector<AccessSample> samples;
  for (const auto& region : regions)
    if (region.start < region.end)
      samples.push_back(
          {region.start, region.end, static_cast<float>(access_rate(region.accesses, attrs))});
  std::sort(samples.begin(), samples.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  for (size_t i = 1; i < samples.size(); ++i)
    samples[i].start = std::max(samples[i].start, samples[i - 1].end);
  std::erase_if(samples, [](const auto& sample) { return sample.start >= sample.end; });
  return samples;
}

class DamonTracker final : public HeatTracker {
 public:
  DamonTracker(pid_t pid, DamonAccess& access, const DamonOptions& options,
               const TrackerTraits& traits)
      : pid_(pid), access_(access), options_(options), attrs_(options.attrs), traits_(traits) {}

  const TrackerTraits& traits() const override { return traits_; }
  Status start() override {
    auto monitor = access_.watch(pid_, attrs_);
    if (!monitor) return tl::unexpected(monitor.error());
    monitor_ = std::move(*monitor);
    return {};
  }
  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange> /*ranges*/) override {
    if (!monitor_) return fail(ErrorCode::kConflict, "DAMON: sampled without a start");
    const auto reading = monitor_->read();
    if (!reading) return tl::unexpected(reading.error());
    cpu_ns_ = reading->cpu_ns;
    return samples_of(reading->regions, attrs_);
  }
  void stop() override { monitor_.reset(); }
  int64_t kernel_cpu_ns() const override { return cpu_ns_; }
  void scale_effort(double factor) override;
  double observed_s() const override {
    return static_cast<double>(attrs_.aggregation_us) / kUsPerS;
  }

 private:
  Status look_each(int64_t sample_us);

  const pid_t pid_;
  DamonAccess& access_;
  const DamonOptions options_;
  DamonAttrs attrs_;                         // with the intervals in use
  int64_t most_aggregation_us_ = INT64_MAX;  // that was not denied
  const TrackerTraits traits_;
  std::unique_ptr<DamonMonitor> monitor_;
  int64_t cpu_ns_ = 0;  // as of the latest sample
};

void DamonTracker::scale_effort(double factor) {
  const auto& fastest = options_.attrs;
  const auto wanted_us = static_cast<int64_t>(static_cast<double>(attrs_.sample_us) / factor);
  const int64_t sample_us = std::clamp(wanted_us, fastest.sample_us,
                                       std::max(fastest.sample_us, options_.slowest_sample_us));
  if (!monitor_ || sample_us == attrs_.sample_us) return;
  auto set = look_each(sample_us);
  // Without CAP_SYS_PTRACE an aggregation has to end soon.
  if (!set && set.error().code == ErrorCode::kDenied &&
      most_aggregation_us_ > kPlainAggregationUs) {
    most_aggregation_us_ = kPlainAggregationUs;
    set = look_each(sample_us);
  }
  if (!set) spdlog::warn("{}", set.error().message);
}

Status DamonTracker::look_each(int64_t sample_us) {
  const int64_t wanted_us =
      std::max(options_.attrs.aggregation_us, sample_us * options_.min_checks);
  const int64_t aggregation_us = std::min(wanted_us, most_aggregation_us_);
  auto set = monitor_->set_intervals(sample_us, aggregation_us);
  // A keeper that is away is told when it is back.
  if (set || set.error().code == ErrorCode::kUnreachable) {
    attrs_.sample_us = sample_us;
    attrs_.aggregation_us = aggregation_us;
  }
  return set;
}

std::vector<std::unique_ptr<DamonAccess>> all_ways(const Sysroot& sysroot) {
  std::vector<std::unique_ptr<DamonAccess>> ways;
  ways.push_back(std::make_unique<DamonFiles>(sysroot));
  ways.push_back(std::make_unique<KeeperClient>(sysroot));
  return ways;
}

}  // namespace

DamonSource::DamonSource(const Sysroot& sysroot, DamonOptions options)
    : DamonSource(all_ways(sysroot), options) {}
DamonSource::DamonSource(std::vector<std::unique_ptr<DamonAccess>> ways, DamonOptions options)
    : ways_(std::move(ways)), options_(options), traits_(traits_of(options_.attrs)) {}
DamonSource::~DamonSource() = default;

Result<DamonAccess*> DamonSource::find_way() const {
  if (open_) return open_;
  std::string reasons;
  for (const auto& way : ways_) {
    const auto status = way->check();
    if (status) return way.get();
    reasons += (reasons.empty() ? "" : "; ") + status.error().message;
    // No other way leads to what the kernel does not have.
    if (status.error().code == ErrorCode::kUnavailable) break;
  }
  return fail(ErrorCode::kUnavailable, reasons);
}

TrackerOffer DamonSource::offer() const {
  const auto way = find_way();
  if (!way) return {.traits = traits_, .available = tl::unexpected(way.error())};
  return {.traits = traits_, .available = {}, .way = std::string((*way)->way())};
}

Status DamonSource::open() {
  const auto way = find_way();
  if (!way) return tl::unexpected(way.error());
  if (auto status = (*way)->open(); !status) return status;
  open_ = *way;
  return {};
}

Result<std::unique_ptr<HeatTracker>> DamonSource::make(pid_t pid) {
  if (auto status = open(); !status) return tl::unexpected(status.error());
  return std::make_unique<DamonTracker>(pid, *open_, options_, traits_);
}

}  // namespace tierpilot
