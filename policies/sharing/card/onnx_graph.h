// The graph of an ONNX model, checked, and its batch.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sharing/card/model_card.h"

namespace tierpilot::sharing {

// Refuses what is no graph: see describe_onnx.
Status check_graph(const onnx::GraphProto& graph, const std::string& name);

// The first dimension of the first input that has one; where that is open, `wanted` or 1. kInvalid:
// it is fixed, and another one is wanted.
Result<uint32_t> batch_of(const onnx::GraphProto& graph, std::optional<uint32_t> wanted,
                          const std::string& name);

// What exporters call -1 or 0 is open, as it is in inputs: the sizes of what is made there are
// inferred. Of a graph that was checked.
void open_dimensions(onnx::GraphProto& graph);

// Open dimensions of inputs get a size, and are told; of many only the first, with a count of the
// others.
std::vector<std::string> close_dimensions(onnx::GraphProto& graph, uint32_t batch,
                                          bool batch_is_told);

}  // namespace tierpilot::sharing
