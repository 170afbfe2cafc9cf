#include "daemon/memory/damon/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <optional>

#include "base/log.h"
#include "base/unique_fd.h"
#include "daemon/memory/damon/claim.h"

namespace tierpilot {
namespace {

const std::string kAttrs = "contexts/0/monitoring_attrs/";
const std::string kScheme = "contexts/0/schemes/0/";

// Relative to a folder: a thousand walks down from the root would cost more than the reads.
Result<uint64_t> read_u64(const UniqueFd& folder, const std::string& file) {
  const UniqueFd fd(::openat(folder.get(), file.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t got = fd ? ::read(fd.get(), text, sizeof text) : -1;
  if (got < 0) return damon_failed(errno, "tried_regions/" + file);
  const std::string_view number(text, static_cast<size_t>(got));
  const auto digits = number.substr(0, number.find('\n'));
  uint64_t value = 0;
  const auto [end, err] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (err != std::errc{} || end != digits.data() + digits.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("DAMON: tried_regions/{}: '{}' is no number", file, digits));
  return value;
}

Result<DamonRegion> read_region(const UniqueFd& regions, const std::string& name) {
  const auto accesses = read_u64(regions, name + "/nr_accesses");
  // Most are idle, and need no more looking.
  if (accesses && *accesses == 0) return DamonRegion{};
  const auto start = read_u64(regions, name + "/start"), end = read_u64(regions, name + "/end");
  for (const auto* field : {&start, &end, &accesses})
    if (!*field) return tl::unexpected(field->error());
  return DamonRegion{*start, *end, *accesses};
}

class FilesMonitor final : public DamonMonitor {
 public:
  FilesMonitor(pid_t pid, int kdamond, std::shared_ptr<DamonClaim> claim)
      : pid_(pid), kdamond_(kdamond), claim_(std::move(claim)) {}
  ~FilesMonitor() override;
  Status start(const DamonAttrs& attrs);
  Result<DamonReading> read() override;
  Status set_intervals(int64_t sample_us, int64_t aggregation_us) override;

 private:
  Status write_intervals(int64_t sample_us, int64_t aggregation_us);
  std::optional<int64_t> kdamond_cpu_ns() const;

  const pid_t pid_;
  const int kdamond_;
  const std::shared_ptr<DamonClaim> claim_;
  bool running_ = false;
  int64_t cpu_ns_ = 0;  // latest known
};

Status FilesMonitor::start(const DamonAttrs& attrs) {
  // A scheme that does nothing, and matches all: its "tried regions" are the monitor's regions.
  const std::string pattern = kScheme + "access_pattern/";
  const std::pair<std::string, std::string> settings[] = {
      {"contexts/nr_contexts", "1"},
      {"contexts/0/operations", "vaddr"},
      {kAttrs + "intervals/update_us", std::to_string(attrs.update_us)},
      {kAttrs + "nr_regions/min", std::to_string(attrs.min_regions)},
      {kAttrs + "nr_regions/max", std::to_string(attrs.max_regions)},
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
  if (auto status = write_intervals(attrs.sample_us, attrs.aggregation_us); !status) return status;
  if (auto status = claim_->write(kdamond_, "state", "on"); !status) return status;
  running_ = true;
  return {};
}

Status FilesMonitor::write_intervals(int64_t sample_us, int64_t aggregation_us) {
  const std::string intervals = kAttrs + "intervals/";
  return claim_->write(kdamond_, intervals + "sample_us", std::to_string(sample_us)).and_then([&] {
    return claim_->write(kdamond_, intervals + "aggr_us", std::to_string(aggregation_us));
  });
}

Status FilesMonitor::set_intervals(int64_t sample_us, int64_t aggregation_us) {
  return write_intervals(sample_us, aggregation_us).and_then([this] {
    return claim_->write(kdamond_, "state", "commit");
  });
}

Result<DamonReading> FilesMonitor::read() {
  // The kernel ends its monitor when the process ends, and refuses the update then.
  const auto updated = claim_->write(kdamond_, "state", "update_schemes_tried_regions");
  if (!updated && !claim_->sysroot().exists(fmt::format("/proc/{}", pid_)))
    return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid_));
  if (!updated) return tl::unexpected(updated.error());
  const auto folder = claim_->path(kdamond_, kScheme + "tried_regions");
  const UniqueFd regions(
      ::open(claim_->sysroot().resolve(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!regions) return damon_failed(errno, "'" + folder + "'");
  const auto names = claim_->sysroot().try_list(folder);
  if (!names) return tl::unexpected(names.error());
  DamonReading reading;
  for (const auto& name : *names) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;  // total_bytes
    const auto region = read_region(regions, name);
    if (!region) return tl::unexpected(region.error());
    if (region->accesses > 0) reading.regions.push_back(*region);
  }
  (void)claim_->write(kdamond_, "state", "clear_schemes_tried_regions");
  // While another program reads DAMON's files the kernel does not tell the thread (EBUSY).
  cpu_ns_ = kdamond_cpu_ns().value_or(cpu_ns_);
  reading.cpu_ns = cpu_ns_;
  return reading;
}

// Fields 14 and 15 of /proc/<pid>/stat, in ticks.
std::optional<int64_t> FilesMonitor::kdamond_cpu_ns() const {
  const auto thread = claim_->sysroot().read_int(claim_->path(kdamond_, "pid"));
  if (!thread || *thread <= 0) return {};
  const auto stat = claim_->sysroot().read(fmt::format("/proc/{}/stat", *thread));
  if (!stat) return {};
  const auto comm_end = stat->rfind(')');
  unsigned long user = 0, system = 0;
  if (comm_end == std::string::npos ||
      std::sscanf(stat->c_str() + comm_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    return {};
  return static_cast<int64_t>(user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

FilesMonitor::~FilesMonitor() {
  // One that runs on would watch another's process: it is turned off with the claim, then.
  const auto stopped = running_ ? claim_->turn_off(kdamond_) : Status();
  if (stopped)
    claim_->release(kdamond_);
  else
    spdlog::warn(stopped.error().message);
}

}  // namespace

DamonFiles::DamonFiles(const Sysroot& sysroot, DamonFilesOptions options)
    : sysroot_(sysroot), options_(std::move(options)) {
  DamonClaim::clear_leftover(sysroot_, options_);
}

DamonFiles::~DamonFiles() = default;

Status DamonFiles::check() const {
  if (claim_) return {};
  return DamonClaim::check(sysroot_, options_);
}

Status DamonFiles::open() {
  if (claim_) return {};
  auto claim = DamonClaim::take(sysroot_, options_);
  if (!claim) return tl::unexpected(claim.error());
  claim_ = std::move(*claim);
  return {};
}

Result<std::unique_ptr<DamonMonitor>> DamonFiles::watch(pid_t pid, const DamonAttrs& attrs) {
  if (auto status = open(); !status) return tl::unexpected(status.error());
  const auto kdamond = claim_->acquire();
  if (!kdamond)
    return fail(ErrorCode::kExhausted,
                fmt::format("DAMON: {} processes are watched already", options_.max_processes));
  auto monitor = std::make_unique<FilesMonitor>(pid, *kdamond, claim_);
  if (auto status = monitor->start(attrs); !status) return tl::unexpected(status.error());
  return monitor;
}

}  // namespace tierpilot
