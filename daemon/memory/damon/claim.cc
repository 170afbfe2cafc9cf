#include "daemon/memory/damon/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/log.h"

namespace tierpilot {
namespace {

bool is_at(int file, const std::filesystem::path& path) {
  struct stat there {
  }, open{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(file, &open) == 0 &&
         there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

const std::string kKdamonds = "/sys/kernel/mm/damon/admin/kdamonds";
const std::string kCount = kKdamonds + "/nr_kdamonds";
const std::string kBootId = "/proc/sys/kernel/random/boot_id";

// The kernel refuses whoever comes while it serves another: a reader of its files, too.
constexpr int kBusyTries = 50;
constexpr auto kBusyPause = std::chrono::milliseconds(2);

Status write_file(const std::filesystem::path& path, std::string_view value) {
  for (int tries = 1;; ++tries) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (file &&
        ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()))
      return {};
    if (errno != EBUSY || tries == kBusyTries)
      return damon_failed(errno, fmt::format("'{}' to '{}'", value, path.string()));
    std::this_thread::sleep_for(kBusyPause);
  }
}

// The claim file of a predecessor of this boot, which nobody locks any more.
bool left_behind(const Sysroot& sysroot, const std::string& claim_path) {
  const UniqueFd file(::open(sysroot.resolve(claim_path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return false;
  const auto claim = sysroot.read(claim_path), boot = sysroot.read(kBootId);
  return claim && boot && *claim == *boot;
}

}  // namespace

tl::unexpected<Error> damon_failed(int err, std::string_view what) {
  if (err != ENOENT) return fail_errno(err, fmt::format("DAMON: {}", what));
  return fail(ErrorCode::kUnavailable,
              fmt::format("DAMON: {}: is missing: somebody else has set DAMON up anew", what));
}

Status DamonClaim::check(const Sysroot& sysroot, const DamonFilesOptions& options) {
  if (!sysroot.exists(kCount))
    return fail(ErrorCode::kUnavailable,
                "unavailable: this kernel has no DAMON with a sysfs interface "
                "(CONFIG_DAMON_SYSFS)");
  const auto count = sysroot.read_int(kCount);
  if (!count) return fail(count.error().code, "unavailable: " + count.error().message);
  if (*count != 0 && !left_behind(sysroot, options.claim_path))
    return fail(ErrorCode::kConflict,
                fmt::format("unavailable: in use: {} kdamonds belong to somebody else", *count));
  if (::access(sysroot.resolve(kCount).c_str(), W_OK) != 0)
    return fail(ErrorCode::kDenied, "unavailable: " + kCount + " may not be written: be root");
  return {};
}

void DamonClaim::clear_leftover(const Sysroot& sysroot, const DamonFilesOptions& options) {
  if (!left_behind(sysroot, options.claim_path)) return;
  DamonClaim claim(sysroot);
  if (claim.lock(options)) claim.ours_ = true;
}

Result<std::shared_ptr<DamonClaim>> DamonClaim::take(const Sysroot& sysroot,
                                                     const DamonFilesOptions& options) {
  if (auto status = check(sysroot, options); !status) return tl::unexpected(status.error());
  const bool leftover = left_behind(sysroot, options.claim_path);
  std::shared_ptr<DamonClaim> claim(new DamonClaim(sysroot));
  auto status = claim->lock(options);
  // A killed predecessor's may still run, and a running one cannot be removed.
  if (status && leftover) {
    claim->ours_ = true;
    status = claim->remove_kdamonds();
  }
  if (status) status = claim->make_kdamonds(options.max_processes);
  if (!status) return tl::unexpected(status.error());
  return claim;
}

Status DamonClaim::lock(const DamonFilesOptions& options) {
  const auto path = sysroot_.resolve(options.claim_path);
  std::error_code ignored;
  std::filesystem::create_directory(path.parent_path(), ignored);
  do {
    lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock_) return fail_errno(errno, fmt::format("claim file '{}'", path.string()));
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      lock_.reset();
      return fail(
          ErrorCode::kConflict,
          fmt::format("unavailable: in use: '{}' is locked by another process", path.string()));
    }
    // Whoever had it may have removed it in between: a file without a name claims nothing.
  } while (!is_at(lock_.get(), path));
  claim_path_ = path.string();
  const auto boot = sysroot_.read(kBootId);
  if (!boot) return tl::unexpected(boot.error());
  return write_file(path, *boot);
}

Status DamonClaim::make_kdamonds(int count) {
  // Once more under the lock: others, who know no claim file, may have been quicker.
  if (sysroot_.read_int(kCount).value_or(1) != 0)
    return fail(ErrorCode::kConflict, "unavailable: in use: somebody else made kdamonds");
  // The kernel takes its own failures back; what is there after one is somebody else's.
  if (auto status = write_file(sysroot_.resolve(kCount), std::to_string(count)); !status)
    return status;
  ours_ = true;
  used_.assign(static_cast<size_t>(count), false);
  if (auto status = write(0, "contexts/nr_contexts", "1"); !status) return status;
  if (auto status = write(0, "contexts/0/schemes/nr_schemes", "1"); !status) return status;
  if (!sysroot_.exists(path(0, "contexts/0/schemes/0/tried_regions")))
    return fail(ErrorCode::kUnavailable,
                "unavailable: this kernel's DAMON does not tell what it sees: it needs kernel 6.2");
  const auto operations = sysroot_.read(path(0, "contexts/0/avail_operations"));
  if (!operations || operations->find("vaddr") == std::string::npos)
    return fail(ErrorCode::kUnavailable,
                "unavailable: this kernel's DAMON cannot watch processes (CONFIG_DAMON_VADDR)");
  return {};
}

Status DamonClaim::remove_kdamonds() {
  const auto count = sysroot_.read_int(kCount).value_or(0);
  for (int i = 0; i < count && i < 1024; ++i)
    if (auto status = turn_off(i); !status) spdlog::warn(status.error().message);
  auto status = write_file(sysroot_.resolve(kCount), "0");
  ours_ = !status;
  return status;
}

DamonClaim::~DamonClaim() {
  if (ours_)
    if (auto status = remove_kdamonds(); !status) spdlog::warn(status.error().message);
  // The file of one that could not remove its kdamonds tells the next whose they are.
  if (lock_ && !ours_) ::unlink(claim_path_.c_str());
}

Status DamonClaim::turn_off(int kdamond) const {
  const auto is_off = [&] {
    const auto state = sysroot_.read(path(kdamond, "state"));
    return state ? *state == "off" : state.error().code == ErrorCode::kNotFound;
  };
  if (is_off()) return {};
  auto status = write(kdamond, "state", "off");
  if (!status && is_off()) return {};
  return status;
}

std::optional<int> DamonClaim::acquire() {
  const auto free = std::find(used_.begin(), used_.end(), false);
  if (free == used_.end()) return {};
  *free = true;
  return static_cast<int>(free - used_.begin());
}

void DamonClaim::release(int kdamond) {
  used_[static_cast<size_t>(kdamond)] = false;
}

std::string DamonClaim::path(int kdamond, const std::string& file) const {
  return fmt::format("{}/{}/{}", kKdamonds, kdamond, file);
}

Status DamonClaim::write(int kdamond, const std::string& file, std::string_view value) const {
  return write_file(sysroot_.resolve(path(kdamond, file)), value);
}

}  // namespace tierpilot
