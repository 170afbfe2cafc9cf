// Model cards from ONNX files.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "policies/sharing/card/model_card.h"

namespace tierpilot::sharing {

inline constexpr uint64_t kMaxModelBytes = uint64_t{2} << 30;  // protobuf reads no more

// `bytes` is a serialised ModelProto; `name` is for messages. The batch is the first dimension of
// the first input; where the file leaves it open, `batch` or 1. So is the first dimension of any
// input that is open, and any other open one is 1; both are told as guessed. Constants of 1024
// elements or more are parameters. Bodies of If, Loop and Scan count once. kInvalid: no ONNX,
// another `batch` than the file has, operators that wait for each other in a circle or for a value
// that nobody makes, a name that is given twice, sizes that no machine has, a stride of 0, a card
// that read_card() would refuse.
Result<ModelCard> describe_onnx(std::string_view bytes, const std::string& name,
                                std::optional<uint32_t> batch);

}  // namespace tierpilot::sharing
