#include "daemon/probe/active/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

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
  return ScratchFile(std::move(fd), directory, *access);
}

tl::unexpected<Error> ScratchFile::failed(const char* what, int err) const {
  return fail_errno(err, fmt::format("directory '{}': {}", directory_, what));
}

Status ScratchFile::empty() {
  if (ftruncate(fd_.get(), 0) != 0) return failed("truncate", errno);
  return {};
}

Status ScratchFile::write(const TierMemory& from, size_t begin, size_t end, size_t chunk) {
  for (size_t at = begin; at < end;) {
    const size_t want = std::min(chunk, end - at);
    const ssize_t put = pwrite(fd_.get(), from.data() + at, want, static_cast<off_t>(at));
    if (put < 0 && errno != EINTR) return failed("write", errno);
    if (put > 0) at += static_cast<size_t>(put);
  }
  return {};
}

Status ScratchFile::read(const TierMemory& into, size_t begin, size_t end, size_t chunk) {
  for (size_t at = begin; at < end;) {
    const size_t want = std::min(chunk, end - at);
    const ssize_t got = pread(fd_.get(), into.data() + at, want, static_cast<off_t>(at));
    if (got == 0)
      return fail(ErrorCode::kIo,
                  fmt::format("directory '{}': the file became shorter", directory_));
    if (got < 0 && errno != EINTR) return failed("read", errno);
    if (got > 0) at += static_cast<size_t>(got);
  }
  return {};
}

Status ScratchFile::sync() {
  if (fdatasync(fd_.get()) != 0) return failed("sync", errno);
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
  if (data == MAP_FAILED) return fail_errno(errno, fmt::format("directory '{}': map", directory_));
  auto status = check_not_resident(data, bytes);
  munmap(data, bytes);
  return status;
}

}  // namespace tierpilot
