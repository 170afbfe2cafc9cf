// Bringing a dataset in from other nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/names.h"

namespace tierpilot {

// How the pool reads replicas of other nodes. Called on the pool's worker threads, several at once;
// may block, but must come back: a cancelled request waits for the call under way.
class RemoteSource {
 public:
  virtual ~RemoteSource() = default;
  // Reads from `offset` on; fewer bytes than asked are fine, 0 means the end of the dataset.
  virtual Result<size_t> read(const std::string& address, const std::string& name, uint64_t version,
                              uint64_t offset, std::span<std::byte> into) = 0;
};

// Writes the dataset's `bytes` bytes to `to`, from the first source that can give them. A version
// never changes, so after an error the next source goes on where the last one stopped; a source
// whose copy has another size is not believed at all, and the next one starts anew.
Status fetch(RemoteSource& remote, const std::vector<std::string>& sources, const DatasetId& id,
             uint64_t bytes, int to, const CancelFlag& cancel);

}  // namespace tierpilot
