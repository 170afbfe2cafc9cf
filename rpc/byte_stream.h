// A connected socket as KJ sees it, with its write queue in the open.
//
// Writes are copied before write() returns and leave together once the loop has nothing else to do:
// a hundred pipelined calls are one system call. A write therefore never waits; the queue is
// bounded by RpcLimits instead (drop_peer_bytes, write_stall_timeout_ms). What was accepted is
// still sent, for at most kLingerMs, when the stream is dropped.
#pragma once

#include <kj/async-io.h>

#include <cstddef>
#include <cstdint>

namespace tierpilot {

class ByteStream : public kj::AsyncIoStream {
 public:
  static constexpr int64_t kLingerMs = 2'000;

  // As write(), but may wait for a few milliseconds for other bytes to leave with, and does not
  // leave when the stream is dropped before.
  virtual kj::Promise<void> write_late(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) = 0;
  // Bytes accepted by write() that the kernel has not taken yet.
  virtual size_t queued_bytes() const = 0;
  // Rejects when the stream can write no more.
  virtual kj::Promise<void> when_queued_below(size_t bytes) = 0;
};

}  // namespace tierpilot
