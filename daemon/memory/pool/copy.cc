#include "daemon/memory/pool/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace tierpilot {
namespace {

// Gives `take` all of it, chunk by chunk.
template <class Take>
Result<ContentDigest> read_all(int from, uint64_t bytes, std::string_view what,
                               const CancelFlag& cancel, Take take) {
  ::posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL);
  CopyBuffer buffer;
  ContentHasher hasher;
  for (uint64_t offset = 0; offset < bytes;) {
    if (cancel) return cancelled(what);
    const auto chunk = buffer.first(bytes - offset);
    const auto got = read_at(from, chunk, offset, what);
    if (!got) return tl::unexpected(got.error());
    if (*got < chunk.size())
      return fail(ErrorCode::kIo, fmt::format("{}: the file ends after {} of {} bytes", what,
                                              offset + *got, bytes));
    hasher.add(chunk);
    if (auto status = take(std::span<const std::byte>(chunk), offset); !status)
      return tl::unexpected(status.error());
    offset += *got;
  }
  return hasher.digest();
}

}  // namespace

tl::unexpected<Error> cancelled(std::string_view what) {
  return fail(ErrorCode::kConflict, fmt::format("{}: cancelled", what));
}

Result<size_t> read_at(int fd, std::span<std::byte> into, uint64_t offset, std::string_view what) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t n =
        ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, what);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Status write_at(int fd, std::span<const std::byte> from, uint64_t offset, std::string_view what) {
  size_t done = 0;
  while (done < from.size()) {
    const ssize_t n =
        ::pwrite(fd, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, what);
    done += static_cast<size_t>(n);
  }
  return {};
}

// 1 MiB read and write through a buffer that stays in the cache. Measured between tmpfs and ext4:
// copy_file_range refuses (EXDEV), sendfile goes page by page (4 to 6 times slower), O_DIRECT is
// slower than the page cache with read-ahead.
Result<ContentDigest> copy_bytes(int from, int to, uint64_t bytes, std::string_view what,
                                 const CancelFlag& cancel) {
  return read_all(from, bytes, what, cancel,
                  [&](auto chunk, uint64_t offset) { return write_at(to, chunk, offset, what); });
}

Result<ContentDigest> digest_file(int fd, uint64_t bytes, std::string_view what,
                                  const CancelFlag& cancel) {
  std::byte beyond;
  const auto more = read_at(fd, {&beyond, 1}, bytes, what);
  if (!more) return tl::unexpected(more.error());
  if (*more > 0)
    return fail(ErrorCode::kIo, fmt::format("{}: the file goes on after {} bytes", what, bytes));
  return read_all(fd, bytes, what, cancel, [](auto, uint64_t) { return Status(); });
}

}  // namespace tierpilot
