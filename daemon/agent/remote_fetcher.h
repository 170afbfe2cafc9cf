// Reads other nodes' replicas for the pool's worker threads. All RPC happens on the event loop: one
// connection per address, and for a sequential reader the next chunks are asked for before it wants
// them, so that a fetch runs at the network's pace and not at its round-trip time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "daemon/memory/pool/remote.h"
#include "rpc/event_loop.h"
#include "rpc/tls.h"

namespace tierpilot::agent {

class RemoteFetcher final : public RemoteSource {
 public:
  static constexpr size_t kChunkBytes = kCopyChunkBytes;
  static constexpr size_t kChunksAhead = 4;

  // On the loop's thread, as are close() and the destructor.
  RemoteFetcher(EventLoop& loop, std::optional<TlsFiles> tls, int64_t timeout_ms = 30'000);
  ~RemoteFetcher() override;

  // On any other thread. kTimeout after `timeout_ms` without an answer, kUnavailable after close().
  Result<size_t> read(const std::string& address, const std::string& name, uint64_t version,
                      uint64_t offset, std::span<std::byte> into) override;
  // Ends every read, now and in future, and closes the connections.
  void close();

 private:
  class Sources;
  struct Waiter;

  EventLoop& loop_;
  const int64_t timeout_ms_;
  std::shared_ptr<Sources> sources_;  // used on the loop's thread only
  std::mutex mutex_;                  // guards what follows
  std::set<std::shared_ptr<Waiter>> waiting_;
  bool closed_ = false;
};

}  // namespace tierpilot::agent
