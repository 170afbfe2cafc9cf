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
#include <memory>

#include "rpc/stream/unsent.h"

namespace tierpilot {

class ByteStream : public kj::AsyncIoStream {
 public:
  static constexpr int64_t kLingerMs = 2'000;

  // Where bytes go that fill() was asked for.
  class Sink {
   public:
    virtual void filled(size_t bytes) = 0;  // fewer than the least: the stream has ended
    virtual void lost(kj::Exception&& why) = 0;

   protected:
    ~Sink() = default;
  };
  // As tryRead(), without a promise: `sink` is told once, maybe before this returns, and not at all
  // after stop_filling(). One at a time.
  virtual void fill(void* buffer, size_t min_bytes, size_t max_bytes, Sink& sink) = 0;
  virtual void stop_filling() = 0;

  // As write(), without a promise: the reason why it failed, if it did. What `may_wait` may stay
  // for a few milliseconds for other bytes to leave with, and does not leave when the stream is
  // dropped before.
  virtual kj::Maybe<kj::Exception> put(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces,
                                       bool may_wait) = 0;
  // Bytes accepted by write() that the kernel has not taken yet.
  virtual size_t queued_bytes() const = 0;
  // The same, kept up to date; 0 when the stream and its linger have ended.
  virtual const std::shared_ptr<Unsent>& unsent() const = 0;
  // Rejects when the stream can write no more.
  virtual kj::Promise<void> when_queued_below(size_t bytes) = 0;
};

}  // namespace tierpilot
