// Reads other nodes' replicas for the pool's worker threads. All RPC happens on the event loop: one
// connection per address, and for a sequential reader the next chunks are asked for before it wants
// them, so that a fetch runs at the network's pace and not at its round-trip time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "daemon/agent/node/mailbox.h"
#include "daemon/memory/pool/remote.h"
#include "rpc/event_loop.h"
#include "rpc/tls/tls.h"

namespace tierpilot::agent {

class TurnCalls;

class RemoteFetcher final : public RemoteSource {
 public:
  static constexpr size_t kChunkBytes = kCopyChunkBytes;
  static constexpr size_t kChunksAhead = 4;

  // On the loop's thread, as are close() and the destructor. What is asked for ahead is dropped
  // when nobody has read on for `idle_ms`.
  RemoteFetcher(EventLoop& loop, Tls tls, int64_t timeout_ms = 30'000, int64_t idle_ms = 10'000);
  ~RemoteFetcher() override;

  // On the loop's thread: where this node serves data itself, which those that it has a turn with
  // may tell others.
  void set_reader(const std::string& address);

  // On any other thread. kTimeout after `timeout_ms` without an answer, kUnavailable after close().
  Result<size_t> read(const std::string& address, const DatasetId& id, uint64_t offset,
                      std::span<std::byte> into) override;
  // Likewise. The loop must outlive the turn.
  Result<TurnAnswer> turn(const std::string& address, const DatasetId& id, bool wait,
                          int64_t limit_ms, const CancelFlag& cancel) override;
  void doubt(const std::string& address, const DatasetId& id) override;
  // Ends every read, now and in future, and closes the connections.
  void close();

 private:
  class HeldTurn;
  class Sources;
  struct Waiter;

  template <class T, class Post>
  Result<T> ask(Mailbox<T>& mailbox, const std::shared_ptr<AnyMailbox>& waiting,
                const std::string& address, int64_t limit_ms, const CancelFlag& cancel,
                const Post& post);

  EventLoop& loop_;
  const int64_t timeout_ms_;
  std::shared_ptr<Sources> sources_;  // used on the loop's thread only, as are turns
  std::shared_ptr<TurnCalls> turns_;
  std::mutex mutex_;  // guards what follows
  std::set<std::shared_ptr<AnyMailbox>> waiting_;
  uint64_t next_turn_ = 0;
  bool closed_ = false;
};

}  // namespace tierpilot::agent
