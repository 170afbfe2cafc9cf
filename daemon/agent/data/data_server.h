// Lets other daemons read this node's replicas (wire::DataSource).
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "daemon/agent/data/answer_room.h"
#include "daemon/agent/data/read_turns.h"
#include "daemon/memory/pool/pool.h"
#include "rpc/address.h"
#include "rpc/event_loop.h"
#include "rpc/tls/tls.h"

namespace tierpilot::agent {

// Owned by the event loop's thread. Disks are read on a thread of its own, so that a slow one does
// not hold up heartbeats. `readers` have a turn at a time, which is advice: reads need none.
class DataServer {
 public:
  static constexpr uint32_t kMaxReadBytes = 1 << 20;
  // Then the next one may read too, whatever the first does: it may stand still.
  static constexpr int64_t kMaxTurnMs = 60'000;
  // As many as stand in line for a turn, and as many beside them; less where descriptors are few.
  // Then those that are idle make room.
  static constexpr uint64_t kMaxConnections = 2 * ReadTurns::kMaxLine;

  static Result<std::unique_ptr<DataServer>> listen(EventLoop& loop, const Address& address,
                                                    const Tls& tls, Pool& pool, size_t readers,
                                                    const AnswerRoom::Limits& room = {});
  ~DataServer();
  Address address() const;
  ReadTurns::Totals turns() const;
  size_t unsent_bytes() const;  // that readers have not taken

 private:
  struct Impl;
  explicit DataServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierpilot::agent
