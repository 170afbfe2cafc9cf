#include "daemon/probe/memory/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <numa.h>
#include <numaif.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace tierpilot {
Result<ScratchFile> ScratchFile::create(const std::string& directory) {
  auto access = directory_access(directory);
  if (!access) return tl::unexpected(access.error());
  UniqueFd fd(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) {  // file systems without nameless files (NFS, some overlays)
    std::string name = directory + "/tierpilot-probe-XXXXXX";
    fd.reset(mkostemp(name.data(), O_CLOEXEC));
    if (!fd) return fail_errno(errno, fmt::format("directory '{}': a file", directory));
    unlink(name.c_str());
  }
  ScratchFile file(std::move(fd), fmt::format("directory '{}'", directory), *access);
  file.directory_.reset(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.directory_) return file.failed("open", errno);
  return file;
}

Result<ScratchFile> ScratchFile::create_on_node(int node, size_t bytes) {
  const auto where = fmt::format("memory of node {}", node);
  UniqueFd fd(memfd_create("tierpilot-probe", MFD_CLOEXEC));
  if (!fd) return fail_errno(errno, where + ": a file");
  // The policy is the file's own and outlives the mapping.
  void* map = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return fail_errno(errno, where + ": map");
  const std::unique_ptr<bitmask, decltype(&numa_free_nodemask)> nodes(numa_allocate_nodemask(),
                                                                      numa_free_nodemask);
  numa_bitmask_setbit(nodes.get(), static_cast<unsigned>(node));
  // The kernel reads one bit less than it is told.
  const long rc = mbind(map, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0);
  const int err = errno;
  munmap(map, bytes);
  // Without NUMA policies there is one node.
  if (rc != 0 && err != ENOSYS) return fail_errno(err, where + ": bind");
  return ScratchFile(std::move(fd), where, DirectoryAccess::kMemory);
}

tl::unexpected<Error> ScratchFile::failed(const char* what, int err) const {
  return fail_errno(err, fmt::format("{}: {}", where_, what));
}

Status ScratchFile::empty() {
  if (ftruncate(fd_.get(), 0) != 0) return failed("truncate", errno);
  return {};
}

Status ScratchFile::allocate(size_t bytes) {
  // File systems without it allocate as the bytes come.
  if (fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) != 0 && errno != EOPNOTSUPP)
    return failed("allocate", errno);
  return {};
}

Status ScratchFile::write(std::span<const std::byte> buffer, size_t at) {
  while (!buffer.empty()) {
    const ssize_t put = pwrite(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (put < 0 && errno != EINTR) return failed("write", errno);
    if (put <= 0) continue;
    at += static_cast<size_t>(put);
    buffer = buffer.subspan(static_cast<size_t>(put));
  }
  return {};
}

Status ScratchFile::read(std::span<std::byte> buffer, size_t at) {
  while (!buffer.empty()) {
    const ssize_t got = pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got == 0) return fail(ErrorCode::kIo, fmt::format("{}: the file became shorter", where_));
    if (got < 0 && errno != EINTR) return failed("read", errno);
    if (got <= 0) continue;
    at += static_cast<size_t>(got);
    buffer = buffer.subspan(static_cast<size_t>(got));
  }
  return {};
}

Status ScratchFile::sync() {
  if (fdatasync(fd_.get()) != 0) return failed("sync", errno);
  return {};
}

Status ScratchFile::sync_name() {
  if (!directory_) return {};
  // An empty file that is gone at once changes the directory as a rename does.
  const std::string name = fmt::format("tierpilot-probe-{}", getpid());
  const UniqueFd named(openat(directory_.get(), name.c_str(),
                              O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_WRONLY | O_CLOEXEC, 0600));
  if (!named) return failed("a file", errno);
  unlinkat(directory_.get(), name.c_str(), 0);
  if (fsync(directory_.get()) != 0) return failed("sync of the directory", errno);
  return {};
}

Status ScratchFile::drop() {
  if (const int err = posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); err != 0)
    return failed("drop from the page cache", err);
  return {};
}

Status ScratchFile::check_cold(size_t bytes) const {
  if (access_ != DirectoryAccess::kPaged) return {};
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (data == MAP_FAILED) return failed("map", errno);
  auto status = check_not_resident(data, bytes);
  munmap(data, bytes);
  return status;
}

}  // namespace tierpilot
