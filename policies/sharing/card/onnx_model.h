// Model cards from ONNX files.
#pragma once

#include <string_view>

#include "base/result.h"
#include "policies/sharing/card/model_card.h"

namespace tierpilot::sharing {

inline constexpr uint64_t kMaxModelBytes = uint64_t{2} << 30;  // protobuf reads no more

// `bytes` is a serialised ModelProto; `name` is for messages. The first dimension of an input that
// the file leaves open becomes `batch`, any other 1; both are told as guessed. kInvalid: no ONNX,
// operators that wait for each other in a circle or for a value that nobody makes, sizes that no
// machine has. Bodies of If, Loop and Scan count once.
Result<ModelCard> describe_onnx(std::string_view bytes, const std::string& name, uint32_t batch);

}  // namespace tierpilot::sharing
