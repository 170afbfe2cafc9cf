// Model cards that somebody gives.
#pragma once

#include <string_view>

#include "base/result.h"
#include "policies/sharing/card/model_card.h"

namespace tierpilot::sharing {

inline constexpr size_t kMaxCardBytes = 64 << 10;

// `json` as docs/model-card.schema.json describes it: what `tierctl model describe -j` and
// tierpilot.describe() write. kInvalid names the field that is missing, unknown or out of range;
// whose card it is, the caller knows.
Result<ModelCard> read_card(std::string_view json);

}  // namespace tierpilot::sharing
