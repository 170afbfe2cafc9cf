// Moving bytes between files on a worker thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/content_digest.h"
#include "base/result.h"

namespace tierpilot {

// Raised by whoever gives up on a request; looked at between chunks.
using CancelFlag = std::atomic<bool>;
inline const CancelFlag kNeverCancelled{false};

inline constexpr size_t kCopyChunkBytes = 1 << 20;

class CopyBuffer {
 public:
  std::span<std::byte> first(uint64_t bytes) {
    return {data_.get(), bytes < kCopyChunkBytes ? static_cast<size_t>(bytes) : kCopyChunkBytes};
  }

 private:
  std::unique_ptr<std::byte[]> data_ = std::make_unique_for_overwrite<std::byte[]>(kCopyChunkBytes);
};

// Errors start with `what`. A file that ends early is kIo, a raised flag kConflict. The digest of
// what was copied, which costs little while it is in the cache anyway.
Result<ContentDigest> copy_bytes(int from, int to, uint64_t bytes, std::string_view what,
                                 const CancelFlag& cancel);
// The same of a file that goes nowhere. One that goes on behind these bytes is kIo, too.
Result<ContentDigest> digest_file(int fd, uint64_t bytes, std::string_view what,
                                  const CancelFlag& cancel);

// Whole pread and pwrite: short transfers go on, EINTR too. read_at gives less only at the end of
// the file. Both return what errno said.
Result<size_t> read_at(int fd, std::span<std::byte> into, uint64_t offset, std::string_view what);
Status write_at(int fd, std::span<const std::byte> from, uint64_t offset, std::string_view what);

tl::unexpected<Error> cancelled(std::string_view what);

}  // namespace tierpilot
