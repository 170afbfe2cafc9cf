// Bringing a dataset in from other nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/names.h"

namespace tierpilot {

// A source's leave to read from it, until this is destroyed. This one is of sources that do not
// take turns.
class ReadTurn {
 public:
  virtual ~ReadTurn() = default;
  // All was read, and other nodes may read it from this one now.
  virtual void done() {}
};

struct TurnAnswer {
  std::unique_ptr<ReadTurn> turn;
  std::string elsewhere;  // without a turn: who may have one; empty: none is free now
};

// How the pool reads replicas of other nodes. Called on the pool's worker threads, several at once;
// may block, but must come back: a cancelled request waits for the call under way.
class RemoteSource {
 public:
  virtual ~RemoteSource() = default;
  // Reads from `offset` on; fewer bytes than asked are fine, 0 means the end of the dataset.
  virtual Result<size_t> read(const std::string& address, const DatasetId& id, uint64_t offset,
                              std::span<std::byte> into) = 0;
  // Asks for a turn to read. With `wait` until it is there, or another source is named, but no
  // longer than `limit_ms` (kTimeout) and not after a cancel (kConflict).
  virtual Result<TurnAnswer> turn(const std::string& address, const DatasetId& id, bool wait,
                                  int64_t limit_ms, const CancelFlag& cancel);
  // Tells a source that what it gave has other bytes than it says: it looks at its copy. Returns at
  // once.
  virtual void doubt(const std::string& address, const DatasetId& id);
};

// How long a fetch may wait for turns, all together; then it reads without one.
inline constexpr int64_t kTurnPatienceMs = 30'000;

// How long, all together, it waits for sources that have too many readers already (kExhausted).
inline constexpr int64_t kBusyPatienceMs = 600'000;

// Writes the dataset's `bytes` bytes to `to`, from the first source that has a turn and can give
// them (see source_choice.h). A version never changes, so after an error the next source goes on
// where the last one stopped; a source whose copy has another size or other bytes than the digest
// says is not believed at all, and the next one starts anew. The turn of the last source, for the
// caller to say when it is done.
Result<std::unique_ptr<ReadTurn>> fetch(RemoteSource& remote,
                                        const std::vector<std::string>& sources,
                                        const DatasetId& id, uint64_t bytes, int to,
                                        const CancelFlag& cancel,
                                        int64_t patience_ms = kTurnPatienceMs);

}  // namespace tierpilot
