// What a new dataset is made of: imported, zeroed or random.
#pragma once

#include <cstdint>
#include <functional>

#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/types.h"

namespace tierpilot {

// Gives a new dataset's bytes.
struct NewContent {
  uint64_t bytes = 0;
  std::function<Result<ContentDigest>(int to, const CancelFlag& cancel)> write;
};

// kInvalid: not a regular file; or what errno said.
Result<NewContent> open_content(const CreateSource& source);

}  // namespace tierpilot
