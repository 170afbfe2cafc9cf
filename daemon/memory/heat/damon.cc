#include "daemon/memory/heat/damon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/log.h"
#include "daemon/memory/heat/damon_claim.h"

namespace tierpilot {
namespace {

constexpr double kUsPerS = 1e6;
const std::string kScheme = "contexts/0/schemes/0/";

TrackerTraits traits_of(const DamonOptions& options) {
  return {.kind = TrackerKind::kDamon,
          .resolution = fmt::format("up to {} regions; {} ms, a page of each region every {} ms",
                                    options.max_regions, options.aggregation_us / 1000,
                                    options.sample_us / 1000),
          .blind_spots =
              "hot pages scattered thinly among cold ones; pages that stay in the TLB, which DAMON "
              "does not flush (an emulated CPU's may hold all memory)",
          .effect = "clears accessed bits, which reclaim looks at too",
          .sees_reads = true,
          .sees_repeats = true,
          .ranks_pages = true};
}

// Relative to a folder: a thousand walks down from the root would cost more than the reads.
Result<uint64_t> read_u64(const UniqueFd& folder, const std::string& file) {
  const UniqueFd fd(::openat(folder.get(), file.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t got = fd ? ::read(fd.get(), text, sizeof text) : -1;
  if (got < 0) return fail_errno(errno, "DAMON: tried_regions/" + file);
  const std::string_view number(text, static_cast<size_t>(got));
  const auto digits = number.substr(0, number.find('\n'));
  uint64_t value = 0;
  const auto [end, err] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (err != std::errc{} || end != digits.data() + digits.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("DAMON: tried_regions/{}: '{}' is no number", file, digits));
  return value;
}

// A check finds a page accessed once or a thousand times all the same. Were accesses independent
// (Poisson), a share p of checks would find some at the rate -ln(1-p) per check: that tells busy
// pages from very busy ones long after p itself is near 1.
double access_rate(uint64_t hits, const DamonOptions& options) {
  const double checks =
      static_cast<double>(options.aggregation_us) / static_cast<double>(options.sample_us);
  const double share = std::min(static_cast<double>(hits) / checks, 1 - 0.5 / checks);
  return -std::log1p(-share) / (static_cast<double>(options.sample_us) / kUsPerS);
}

class DamonTracker final : public HeatTracker {
 public:
  DamonTracker(pid_t pid, int kdamond, std::shared_ptr<DamonClaim> claim, DamonOptions options,
               const TrackerTraits& traits)
      : pid_(pid),
        kdamond_(kdamond),
        claim_(std::move(claim)),
        fastest_(std::move(options)),
        options_(fastest_),
        traits_(traits) {}
  ~DamonTracker() override {
    stop();
    claim_->release(kdamond_);
  }

  const TrackerTraits& traits() const override { return traits_; }
  Status start() override;
  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange> ranges) override;
  void stop() override;
  int64_t kernel_cpu_ns() const override;
  void scale_effort(double factor) override;
  double observed_s() const override {
    return static_cast<double>(options_.aggregation_us) / kUsPerS;
  }

 private:
  Status write_intervals();
  Result<AccessSample> read_region(const UniqueFd& regions, const std::string& name) const;

  const pid_t pid_;
  const int kdamond_;
  const std::shared_ptr<DamonClaim> claim_;
  const DamonOptions fastest_;
  DamonOptions options_;  // with the intervals in use
  const TrackerTraits traits_;
  bool running_ = false;
};

Status DamonTracker::start() {
  const std::string attrs = "contexts/0/monitoring_attrs/";
  // A scheme that does nothing, and matches all: its "tried regions" are the monitor's regions.
  const std::string pattern = kScheme + "access_pattern/";
  const std::pair<std::string, std::string> settings[] = {
      {"contexts/nr_contexts", "1"},
      {"contexts/0/operations", "vaddr"},
      {attrs + "intervals/update_us", std::to_string(options_.update_us)},
      {attrs + "nr_regions/min", std::to_string(options_.min_regions)},
      {attrs + "nr_regions/max", std::to_string(options_.max_regions)},
      {"contexts/0/targets/nr_targets", "1"},
      {"contexts/0/targets/0/pid_target", std::to_string(pid_)},
      {"contexts/0/schemes/nr_schemes", "1"},
      {kScheme + "action", "stat"},
      {pattern + "sz/max", std::to_string(UINT64_MAX)},
      {pattern + "nr_accesses/max", std::to_string(UINT32_MAX)},
      {pattern + "age/max", std::to_string(UINT32_MAX)},
  };
  for (const auto& [file, value] : settings)
    if (auto status = claim_->write(kdamond_, file, value); !status) return status;
  if (auto status = write_intervals(); !status) return status;
  if (auto status = claim_->write(kdamond_, "state", "on"); !status) return status;
  running_ = true;
  return {};
}

Status DamonTracker::write_intervals() {
  const std::string intervals = "contexts/0/monitoring_attrs/intervals/";
  if (auto status =
          claim_->write(kdamond_, intervals + "sample_us", std::to_string(options_.sample_us));
      !status)
    return status;
  return claim_->write(kdamond_, intervals + "aggr_us", std::to_string(options_.aggregation_us));
}

void DamonTracker::scale_effort(double factor) {
  const auto wanted_us = static_cast<int64_t>(static_cast<double>(options_.sample_us) / factor);
  const int64_t sample_us = std::clamp(wanted_us, fastest_.sample_us,
                                       std::max(fastest_.sample_us, fastest_.slowest_sample_us));
  if (!running_ || sample_us == options_.sample_us) return;
  options_.sample_us = sample_us;
  options_.aggregation_us = std::max(fastest_.aggregation_us, sample_us * fastest_.min_checks);
  const auto written =
      write_intervals().and_then([this] { return claim_->write(kdamond_, "state", "commit"); });
  if (!written) spdlog::warn("{}", written.error().message);
}

Result<AccessSample> DamonTracker::read_region(const UniqueFd& regions,
                                               const std::string& name) const {
  const auto accesses = read_u64(regions, name + "/nr_accesses");
  // Most are idle, and need no more looking.
  if (accesses && *accesses == 0) return AccessSample{};
  const auto start = read_u64(regions, name + "/start"), end = read_u64(regions, name + "/end");
  for (const auto* field : {&start, &end, &accesses})
    if (!*field) return tl::unexpected(field->error());
  return AccessSample{*start, *end, static_cast<float>(access_rate(*accesses, options_))};
}

Result<std::vector<AccessSample>> DamonTracker::sample(std::span<const TrackedRange> /*ranges*/) {
  // The kernel ends its monitor when the process ends, and refuses the update then.
  const auto updated = claim_->write(kdamond_, "state", "update_schemes_tried_regions");
  if (!updated && !claim_->sysroot().exists(fmt::format("/proc/{}", pid_)))
    return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid_));
  if (!updated) return tl::unexpected(updated.error());
  const auto folder = claim_->path(kdamond_, kScheme + "tried_regions");
  const UniqueFd regions(
      ::open(claim_->sysroot().resolve(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<AccessSample> samples;
  for (const auto& name : claim_->sysroot().list(folder)) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;  // total_bytes
    const auto region = read_region(regions, name);
    if (!region) return tl::unexpected(region.error());
    if (region->accesses_per_page_s > 0 && region->start < region->end) samples.push_back(*region);
  }
  std::sort(samples.begin(), samples.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  for (size_t i = 1; i < samples.size(); ++i)
    samples[i].start = std::max(samples[i].start, samples[i - 1].end);
  std::erase_if(samples, [](const auto& sample) { return sample.start >= sample.end; });
  (void)claim_->write(kdamond_, "state", "clear_schemes_tried_regions");
  return samples;
}

void DamonTracker::stop() {
  if (!std::exchange(running_, false)) return;
  const auto state = claim_->sysroot().read(claim_->path(kdamond_, "state"));
  if (state && *state == "off") return;
  if (auto status = claim_->write(kdamond_, "state", "off"); !status)
    spdlog::warn(status.error().message);
}

// Fields 14 and 15 of /proc/<pid>/stat, in ticks.
int64_t DamonTracker::kernel_cpu_ns() const {
  const auto thread = claim_->sysroot().read_int(claim_->path(kdamond_, "pid"));
  if (!thread || *thread <= 0) return 0;
  const auto stat = claim_->sysroot().read(fmt::format("/proc/{}/stat", *thread));
  if (!stat) return 0;
  const auto comm_end = stat->rfind(')');
  unsigned long user = 0, system = 0;
  if (comm_end == std::string::npos ||
      std::sscanf(stat->c_str() + comm_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    return 0;
  return static_cast<int64_t>(user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

}  // namespace

DamonSource::DamonSource(const Sysroot& sysroot, DamonOptions options)
    : sysroot_(sysroot), options_(std::move(options)), traits_(traits_of(options_)) {
  DamonClaim::clear_leftover(sysroot_, options_);
}
DamonSource::~DamonSource() = default;

TrackerOffer DamonSource::offer() const {
  if (claim_) return {traits_, {}};
  return {traits_, DamonClaim::check(sysroot_, options_)};
}

Status DamonSource::open() {
  if (claim_) return {};
  auto claim = DamonClaim::take(sysroot_, options_);
  if (!claim) return tl::unexpected(claim.error());
  claim_ = std::move(*claim);
  return {};
}

Result<std::unique_ptr<HeatTracker>> DamonSource::make(pid_t pid) {
  if (auto status = open(); !status) return tl::unexpected(status.error());
  const auto kdamond = claim_->acquire();
  if (!kdamond)
    return fail(ErrorCode::kExhausted,
                fmt::format("DAMON: {} processes are watched already", options_.max_processes));
  return std::make_unique<DamonTracker>(pid, *kdamond, claim_, options_, traits_);
}

}  // namespace tierpilot
