#include "daemon/memory/heat/fault_addresses.h"

#include <fmt/format.h>
#include <signal.h>

#include "daemon/memory/heat/fault_recorder.h"

namespace tierpilot {
namespace {

TrackerTraits traits_of(TrackerKind kind) {
  if (kind == TrackerKind::kNumaHint)
    return {.kind = kind,
            .resolution = "single pages, once per scan of NUMA balancing (1 to 60 s)",
            .blind_spots =
                "accesses between two scans; memory that NUMA balancing skips: shared libraries, "
                "and of a process with one thread what is on its own node already; faults beyond "
                "16,384 pages of all watched processes between two looks",
            .effect = "none beyond the hint faults that the kernel provokes anyhow",
            .sees_reads = true,
            .sees_repeats = true};
  return {.kind = kind,
          .resolution = "single pages, each fault",
          .blind_spots =
              "every access that causes no fault: memory in use is seen once, when it "
              "is touched first; faults beyond 16,384 pages between two looks",
          .effect = "some 100 ns a fault",
          .sees_reads = true,
          .sees_repeats = false};
}

class FaultTracker final : public HeatTracker {
 public:
  FaultTracker(pid_t pid, const TrackerTraits& traits, std::shared_ptr<FaultRecorder> recorder,
               const Clock& clock)
      : pid_(pid), traits_(traits), recorder_(std::move(recorder)), clock_(clock) {}
  ~FaultTracker() override { stop(); }

  const TrackerTraits& traits() const override { return traits_; }

  Status start() override {
    last_ns_ = clock_.boot_ns();
    return recorder_->watch(pid_);
  }

  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange> /*ranges*/) override {
    if (::kill(pid_, 0) != 0 && errno == ESRCH)
      return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid_));
    const int64_t now_ns = clock_.boot_ns();
    const double interval_s = static_cast<double>(now_ns - last_ns_) / 1e9;
    if (interval_s <= 0) return std::vector<AccessSample>{};
    last_ns_ = now_ns;
    return samples_of_faults(recorder_->take(pid_), interval_s);
  }

  void stop() override { recorder_->unwatch(pid_); }

 private:
  const pid_t pid_;
  const TrackerTraits traits_;
  const std::shared_ptr<FaultRecorder> recorder_;
  const Clock& clock_;
  int64_t last_ns_ = 0;
};

}  // namespace

std::vector<AccessSample> samples_of_faults(const FaultCounts& faults, double interval_s) {
  std::vector<AccessSample> samples;
  for (const auto& [page, count] : faults) {
    const auto rate = static_cast<float>(static_cast<double>(count) / interval_s);
    if (!samples.empty() && samples.back().end == page &&
        samples.back().accesses_per_page_s == rate)
      samples.back().end += kBasePageBytes;
    else
      samples.push_back({page, page + kBasePageBytes, rate});
  }
  return samples;
}

FaultSource::FaultSource(TrackerKind kind, const Sysroot& sysroot, const Clock& clock)
    : traits_(traits_of(kind)), sysroot_(sysroot), clock_(clock) {}
FaultSource::~FaultSource() = default;

Status FaultSource::hints_available() const {
  const auto nodes = sysroot_.read_id_list("/sys/devices/system/node/has_memory");
  if (!nodes) return fail(ErrorCode::kUnavailable, "unavailable: " + nodes.error().message);
  if (nodes->size() < 2)
    return fail(ErrorCode::kUnavailable,
                "unavailable: one NUMA node has all memory, so the kernel provokes no hint faults");
  const auto mode = sysroot_.read_int("/proc/sys/kernel/numa_balancing");
  if (!mode) return fail(ErrorCode::kUnavailable, "unavailable: " + mode.error().message);
  if (*mode == 0)
    return fail(ErrorCode::kUnavailable,
                "unavailable: kernel.numa_balancing is 0, so there are no hint faults");
  return {};
}

TrackerOffer FaultSource::offer() const {
  if (traits_.kind == TrackerKind::kNumaHint)
    if (auto status = hints_available(); !status) return {traits_, status};
  const auto missing = Capabilities::of_self().missing({38, 39});  // CAP_PERFMON, CAP_BPF
  if (!missing.empty())
    return {traits_, fail(ErrorCode::kDenied, "unavailable: missing " + missing)};
  return {traits_, {}};
}

Status FaultSource::open() {
  if (recorder_) return {};
  auto recorder = FaultRecorder::open();
  if (!recorder) return tl::unexpected(recorder.error());
  recorder_ = std::move(*recorder);
  return {};
}

Result<std::unique_ptr<HeatTracker>> FaultSource::make(pid_t pid) {
  if (auto status = open(); !status) return tl::unexpected(status.error());
  return std::make_unique<FaultTracker>(pid, traits_, recorder_, clock_);
}

}  // namespace tierpilot
