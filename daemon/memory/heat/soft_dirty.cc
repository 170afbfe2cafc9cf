#include "daemon/memory/heat/soft_dirty.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/unique_fd.h"

namespace tierpilot {
namespace {

constexpr uint64_t kSoftDirty = uint64_t{1} << 55;
constexpr size_t kEntriesPerRead = 8192;
// Samples are bounded: a larger process is looked at in larger blocks.
constexpr size_t kMaxBlocks = 65'536;

const TrackerTraits kTraits{
    .kind = TrackerKind::kSoftDirty,
    .resolution = "single pages up to 256 MiB, then blocks of 2, 4, ... pages; each interval",
    .blind_spots = "reads; how often a page is written within an interval",
    .effect =
        "write-protects all pages each interval, so that each page's first write faults; "
        "disturbs other users of the bits (CRIU)",
    .sees_reads = false,
    .sees_repeats = true};

UniqueFd open_of(const Sysroot& sysroot, pid_t pid, std::string_view file, int flags) {
  const auto path = sysroot.resolve(fmt::format("/proc/{}/{}", pid, file));
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC));
}

// A page that was just written is dirty at once where the kernel keeps the bit.
bool kernel_keeps_the_bit() {
  void* page =
      ::mmap(nullptr, kBasePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  *static_cast<volatile char*>(page) = 1;
  const UniqueFd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  uint64_t entry = 0;
  const auto offset = reinterpret_cast<uintptr_t>(page) / kBasePageBytes * sizeof entry;
  const bool read = ::pread(pagemap.get(), &entry, sizeof entry, static_cast<off_t>(offset)) ==
                    static_cast<ssize_t>(sizeof entry);
  ::munmap(page, kBasePageBytes);
  return read && (entry & kSoftDirty);
}

class SoftDirtyTracker final : public HeatTracker {
 public:
  SoftDirtyTracker(pid_t pid, const Sysroot& sysroot, const Clock& clock)
      : pid_(pid), sysroot_(sysroot), clock_(clock) {}

  const TrackerTraits& traits() const override { return kTraits; }

  Status start() override {
    pagemap_ = open_of(sysroot_, pid_, "pagemap", O_RDONLY);
    if (!pagemap_) return fail_errno(errno, fmt::format("/proc/{}/pagemap", pid_));
    return clear();
  }

  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange> ranges) override {
    const double interval_s = static_cast<double>(clock_.boot_ns() - cleared_ns_) / 1e9;
    std::vector<AccessSample> samples;
    if (interval_s <= 0) return samples;
    uint64_t pages = 0;
    for (const auto& range : ranges) pages += range.bytes() / kBasePageBytes;
    const size_t block_pages = std::bit_ceil((pages + kMaxBlocks - 1) / kMaxBlocks);
    for (const auto& range : ranges)
      if (auto status = look(range, block_pages, interval_s, samples); !status)
        return tl::unexpected(status.error());
    // Writes between the look and the clearing are lost; they are few.
    return clear().map([&samples] { return std::move(samples); });
  }

  void stop() override { pagemap_.reset(); }

 private:
  Status clear() {
    const auto file = open_of(sysroot_, pid_, "clear_refs", O_WRONLY);
    if (!file || ::write(file.get(), "4", 1) != 1)
      return fail_errno(errno, fmt::format("/proc/{}/clear_refs", pid_));
    cleared_ns_ = clock_.boot_ns();
    return {};
  }

  Status look(const TrackedRange& range, size_t block_pages, double interval_s,
              std::vector<AccessSample>& samples) {
    std::vector<uint64_t> entries(std::max(kEntriesPerRead, block_pages));
    for (uint64_t at = range.start; at < range.end;) {
      const auto want = std::min<uint64_t>(entries.size(), (range.end - at) / kBasePageBytes);
      const auto got = ::pread(pagemap_.get(), entries.data(), want * sizeof(uint64_t),
                               static_cast<off_t>(at / kBasePageBytes * sizeof(uint64_t)));
      if (got < 0) return fail_errno(errno, fmt::format("/proc/{}/pagemap", pid_));
      if (got == 0) return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid_));
      const auto pages = static_cast<size_t>(got) / sizeof(uint64_t);
      if (pages == 0)
        return fail(ErrorCode::kIo,
                    fmt::format("/proc/{}/pagemap: {} bytes are no entry", pid_, got));
      add_dirty_samples({entries.data(), pages}, at, block_pages, interval_s, samples);
      at += pages * kBasePageBytes;
    }
    return {};
  }

  const pid_t pid_;
  const Sysroot& sysroot_;
  const Clock& clock_;
  UniqueFd pagemap_;
  int64_t cleared_ns_ = 0;
};

}  // namespace

void add_dirty_samples(std::span<const uint64_t> entries, uint64_t start, size_t block_pages,
                       double interval_s, std::vector<AccessSample>& samples) {
  for (size_t first = 0; first < entries.size(); first += block_pages) {
    const auto block = entries.subspan(first, std::min(block_pages, entries.size() - first));
    const auto dirty = std::count_if(block.begin(), block.end(),
                                     [](uint64_t entry) { return entry & kSoftDirty; });
    if (dirty == 0) continue;
    const auto rate = static_cast<float>(static_cast<double>(dirty) /
                                         static_cast<double>(block.size()) / interval_s);
    const uint64_t from = start + first * kBasePageBytes;
    const uint64_t to = from + block.size() * kBasePageBytes;
    if (!samples.empty() && samples.back().end == from &&
        samples.back().accesses_per_page_s == rate)
      samples.back().end = to;
    else
      samples.push_back({from, to, rate});
  }
}

TrackerOffer SoftDirtySource::offer() const {
  if (kernel_keeps_the_bit()) return {kTraits, {}};
  return {kTraits, fail(ErrorCode::kUnavailable,
                        "unavailable: this kernel keeps no soft-dirty bits "
                        "(CONFIG_MEM_SOFT_DIRTY is off)")};
}

// clear_refs may be written by the process's owner, and by no capability but CAP_DAC_OVERRIDE.
Status SoftDirtySource::may_watch(pid_t pid) const {
  const auto path = sysroot_.resolve(fmt::format("/proc/{}/clear_refs", pid));
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0) return {};
  if (errno == ENOENT) return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid));
  return fail_errno(
      errno, fmt::format("soft-dirty: process {} of another user: '{}'", pid, path.string()));
}

Result<std::unique_ptr<HeatTracker>> SoftDirtySource::make(pid_t pid) {
  if (auto status = may_watch(pid); !status) return tl::unexpected(status.error());
  return std::make_unique<SoftDirtyTracker>(pid, sysroot_, clock_);
}

}  // namespace tierpilot
