#include "daemon/memory/pool/tier_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "daemon/memory/pool/numa_bind.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kReplicaMode = 0444;

mode_t replica_mode(bool home) {
  return home ? kReplicaMode | S_ISVTX : kReplicaMode;
}

// A read lease is granted only while nobody has the file open for writing. A killed process may
// take a moment to let go.
Status wait_for_writers(int fd, const std::string& path) {
  // Whoever opens the file meanwhile breaks the lease: SIGIO, the default, would end this process.
  ::fcntl(fd, F_SETSIG, SIGURG);
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (::fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
      ::fcntl(fd, F_SETLEASE, F_UNLCK);
      return {};
    }
    // Not every user may take leases; then there is nothing to be learnt this way.
    if (errno != EAGAIN) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return fail(ErrorCode::kConflict,
              fmt::format("'{}' is still open for writing: a process outlived its task", path));
}

}  // namespace

Draft::~Draft() {
  if (!fd_ || path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TierStore::name() const {
  return fmt::format("{} '{}'", options_.label, options_.dir);
}

std::string TierStore::path_of(const ReplicaFile& file) const {
  return options_.dir + "/" + replica_file_name(file);
}

Result<TierStore> TierStore::open(TierStoreOptions options) {
  std::error_code error;
  options.dir = fs::absolute(options.dir).lexically_normal().string();
  fs::create_directories(options.dir, error);
  const std::string name = fmt::format("{} '{}'", options.label, options.dir);
  if (error) return fail_errno(error.value(), name + ": cannot be made");
  UniqueFd dir(::open(options.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return fail_errno(errno, name + ": cannot be opened");
  if (::flock(dir.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::kConflict,
                name + ": is in use by another pool: give each tier of each daemon its own folder");
  TierStore store(std::move(options), std::move(dir));
  if (auto status = store.check_file_system(); !status) return tl::unexpected(status.error());
  if (store.options_.numa_node >= 0) {
    auto status = check_numa_node(store.options_.numa_node, store.options_.budget_bytes);
    if (!status) return fail(status.error().code, name + ": " + status.error().message);
  }
  // What a start left that was killed here.
  ::unlink((store.options_.dir + "/" + draft_file_name(0)).c_str());
  // Says now, not at the first request, that files cannot be made or bound here.
  if (auto probe = store.draft(0); !probe) return tl::unexpected(probe.error());
  return store;
}

Status TierStore::check_file_system() const {
  struct statfs info {};
  if (::fstatfs(dir_.get(), &info) != 0) return fail_errno(errno, name() + ": statfs");
  const bool tmpfs = info.f_type == TMPFS_MAGIC;
  if (options_.in_memory && !tmpfs)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: is not on tmpfs (file system type {:#x}): choose a folder under "
                            "/dev/shm, or mount -t tmpfs -o size={} tmpfs {}",
                            name(), info.f_type, options_.budget_bytes, options_.dir));
  if (!options_.in_memory && tmpfs)
    spdlog::warn("{}: is on tmpfs, its datasets will not survive a reboot", name());
  const uint64_t bytes = info.f_blocks * static_cast<uint64_t>(info.f_bsize);
  if (bytes < options_.budget_bytes)
    spdlog::warn("{}: its budget of {} bytes is more than the {} bytes of its file system", name(),
                 options_.budget_bytes, bytes);
  return {};
}

Result<Draft> TierStore::create_file(const std::string& file_name, uint64_t bytes) const {
  const std::string path = options_.dir + "/" + file_name;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(errno, fmt::format("{}: cannot create '{}'", name(), file_name));
  Draft draft(std::move(fd), path, bytes);
  if (options_.numa_node >= 0) {
    const uint64_t span = std::max(bytes, options_.budget_bytes);
    auto status = bind_pages(draft.fd(), span, options_.numa_node);
    if (!status) return fail(status.error().code, name() + ": " + status.error().message);
  }
  if (auto status = allocate(draft.fd(), bytes); !status) return tl::unexpected(status.error());
  return draft;
}

Status TierStore::allocate(int fd, uint64_t bytes) const {
  if (bytes == 0) return {};
  int rc;
  do {
    rc = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  // Without fallocate a full disk shows during the copy.
  if (rc == 0 || errno == EOPNOTSUPP) return {};
  const int err = errno;
  struct statfs info {};
  ::fstatfs(dir_.get(), &info);
  return fail_errno(
      err, fmt::format("{}: no room for {} bytes, {} bytes are free on its file system", name(),
                       bytes, info.f_bavail * static_cast<uint64_t>(info.f_bsize)));
}

Result<Draft> TierStore::draft(uint64_t bytes) {
  return create_file(draft_file_name(serial_->fetch_add(1)), bytes);
}

Result<Draft> TierStore::private_copy(const std::string& owner, const std::string& dataset,
                                      uint64_t bytes) {
  return create_file(private_file_name(owner, dataset), bytes);
}

Result<Draft> TierStore::reclaim_private(const std::string& owner,
                                         const std::string& dataset) const {
  const std::string path = options_.dir + "/" + private_file_name(owner, dataset);
  const auto lost = [&] {
    return fail_errno(errno, fmt::format("what the task wrote to '{}' is lost", path));
  };
  const auto not_its_own = [&] {
    return fail(
        ErrorCode::kConflict,
        fmt::format("'{}' is not a file of its own any more: the task replaced or linked it",
                    path));
  };
  // A handle first: the program may have left a FIFO, a link, or a mode that lets nobody read.
  const UniqueFd handle(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!handle || ::fstat(handle.get(), &info) != 0) return lost();
  // Still its user's: it had a second name when the task ended, see daemon/exec/users/belongings.h.
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || info.st_uid != ::geteuid())
    return not_its_own();
  const auto itself = fmt::format("/proc/self/fd/{}", handle.get());
  if (::chmod(itself.c_str(), 0600) != 0) return lost();
  UniqueFd fd(::open(itself.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return lost();
  if (auto status = wait_for_writers(fd.get(), path); !status)
    return tl::unexpected(status.error());
  // Its last writer may have made it longer, or given it a name, meanwhile.
  if (::fstat(fd.get(), &info) != 0) return lost();
  if (info.st_nlink != 1) return not_its_own();
  return Draft(std::move(fd), path, static_cast<uint64_t>(info.st_size));
}

void TierStore::remove_private(const std::string& owner, const std::string& dataset) const {
  std::error_code ignored;
  fs::remove_all(options_.dir + "/" + private_file_name(owner, dataset), ignored);
}

Status TierStore::settle(const Draft& draft) const {
  if (options_.in_memory || ::fsync(draft.fd()) == 0) return {};
  return fail_errno(errno, fmt::format("{}: fsync of '{}'", name(), draft.path()));
}

Status TierStore::publish(Draft draft, const ReplicaFile& file, bool home) const {
  const std::string path = path_of(file);
  const auto failed = [&](const char* step) {
    return fail_errno(errno, fmt::format("{}: {} of {}", name(), step, describe(file.id)));
  };
  if (::fchmod(draft.fd(), replica_mode(home)) != 0) return failed("chmod");
  if (!options_.in_memory && ::fsync(draft.fd()) != 0) return failed("fsync");
  if (::rename(draft.path().c_str(), path.c_str()) != 0) return failed("rename");
  draft.keep();
  if (auto status = sync_dir(); !status) {
    ::unlink(path.c_str());
    return status;
  }
  drop_page_cache(draft.fd());
  return {};
}

Result<UniqueFd> TierStore::open_replica(const ReplicaFile& file) const {
  UniqueFd fd(::open(path_of(file).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, fmt::format("{}: {}", name(), describe(file.id)));
  return fd;
}

Status TierStore::remove(const ReplicaFile& file) const {
  if (::unlink(path_of(file).c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, fmt::format("{}: cannot remove {}", name(), describe(file.id)));
  return {};
}

Status TierStore::set_aside(const ReplicaFile& file) const {
  const std::string aside = options_.dir + "/.damaged-" + replica_file_name(file);
  if (::rename(path_of(file).c_str(), aside.c_str()) != 0 && errno != ENOENT) return remove(file);
  return sync_dir();
}

Status TierStore::set_home(const ReplicaFile& file, bool home) const {
  auto fd = open_replica(file);
  if (!fd) return tl::unexpected(fd.error());
  if (::fchmod(fd->get(), replica_mode(home)) != 0 ||
      (!options_.in_memory && ::fsync(fd->get()) != 0))
    return fail_errno(errno, fmt::format("{}: cannot mark {}", name(), describe(file.id)));
  return {};
}

void TierStore::drop_page_cache(int fd) const {
  if (!options_.in_memory) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

Status TierStore::sync_dir() const {
  if (!options_.in_memory && ::fsync(dir_.get()) != 0)
    return fail_errno(errno, name() + ": fsync of the folder");
  return {};
}

}  // namespace tierpilot
