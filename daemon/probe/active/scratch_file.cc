#include "daemon/probe/active/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace tierpilot {
namespace {

constexpr size_t kChunk = 1 << 20;

}  // namespace

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
  return ScratchFile(std::move(fd), directory, *access);
}

Status ScratchFile::write_through(const TierMemory& from) {
  const auto failed = [this](const char* what) {
    return fail_errno(errno, fmt::format("directory '{}': {}", directory_, what));
  };
  // Emptied first: an eviction finds no blocks allocated for it.
  if (ftruncate(fd_.get(), 0) != 0) return failed("truncate");
  for (size_t at = 0; at < from.size();) {
    const size_t want = std::min(kChunk, from.size() - at);
    const ssize_t put = pwrite(fd_.get(), from.data() + at, want, static_cast<off_t>(at));
    if (put < 0 && errno != EINTR) return failed("write");
    if (put > 0) at += static_cast<size_t>(put);
  }
  if (fdatasync(fd_.get()) != 0) return failed("sync");
  if (const int err = posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); err != 0)
    return fail_errno(err, fmt::format("directory '{}': drop from the page cache", directory_));
  return {};
}

Status ScratchFile::read_cold(const TierMemory& into) {
  for (size_t at = 0; at < into.size();) {
    const size_t want = std::min(kChunk, into.size() - at);
    const ssize_t got = pread(fd_.get(), into.data() + at, want, static_cast<off_t>(at));
    if (got == 0)
      return fail(ErrorCode::kIo,
                  fmt::format("directory '{}': the file became shorter", directory_));
    if (got < 0 && errno != EINTR)
      return fail_errno(errno, fmt::format("directory '{}': read", directory_));
    if (got > 0) at += static_cast<size_t>(got);
  }
  posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

Status ScratchFile::check_cold(size_t bytes) const {
  if (access_ != DirectoryAccess::kPaged) return {};
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (data == MAP_FAILED) return fail_errno(errno, fmt::format("directory '{}': map", directory_));
  auto status = check_not_resident(data, bytes);
  munmap(data, bytes);
  return status;
}

}  // namespace tierpilot
